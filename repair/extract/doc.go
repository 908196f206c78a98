// Package extract takes keys out of a member's database or a backup, sound or damaged, and writes them into a new form:
// JSON lines, scripts for etcdctl, Kubernetes manifests, a backup that a restore accepts, or another cluster.
//
// # What is selected
//
// Bucket key is a history: every change is a record under its revision, and what a reader sees at revision R is the
// newest record at or below R of every key, unless that is a tombstone (server/storage/mvcc/kvstore.go). An extract of
// the state at R is therefore a pass over all records that keeps the newest of each key. Places are kept, not values,
// and what does not fit in a fixed budget goes to sorted runs in a scratch folder, so memory does not grow with the
// number of keys.
//
// # What is lost
//
// Pages that cannot be read hide records, and nobody knows of which keys: the newest readable record of a key may not
// be its newest one, and a key that looks alive may have been deleted. Result names every such place with the span of
// revisions it hides, every record that does not decode, and every key that was asked for and not found. Salvage adds
// the records of damaged and lost pages.
//
// # Revisions and leases
//
// A backup keeps the revisions of its records; all else cannot, as a server gives revisions itself. Leases restart
// with their stored TTL: how much of it had passed is not in the database.
package extract

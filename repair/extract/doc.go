// Package extract reads keys from a member's database or a backup, intact or damaged. It writes them as JSON lines,
// scripts for etcdctl, Kubernetes manifests, a backup that a restore accepts, or into another cluster.
//
// # Selection
//
// Bucket key is a history: every change is a record under its revision. A reader at revision R sees the newest record
// of every key at or below R, unless that is a tombstone (server/storage/mvcc/kvstore.go). So an extract of the state
// at R passes over all records and keeps the newest of each key. It keeps places instead of values, and writes sorted
// runs to a scratch folder beyond a fixed budget. So memory does not grow with the number of keys.
//
// # Losses
//
// Unreadable pages hide records of unknown keys. The newest readable record of a key may not be its newest one, and an
// apparently live key may have been deleted. Result lists every such place with its span of revisions, every record
// that does not decode, and every requested key that was not found. Salvage adds the records of damaged and lost pages.
//
// # Revisions and leases
//
// A backup keeps the revisions of its records. The other forms cannot, since the server assigns revisions. Leases
// restart with their stored TTL: the time already elapsed is not in the database.
package extract

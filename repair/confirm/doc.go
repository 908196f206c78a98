// Package confirm gives a second opinion on a diagnosis: a real etcd server executes the committed log in a sandbox,
// and its content is compared with each member's database.
//
// # How a server executes a given log
//
// The scratch data dir belongs to a new member that is in no log. It starts from a base: the empty database of a new
// cluster with its first member, a backup, or a database received from a leader (.snap.db). Its WAL has the entries
// after the base, unchanged and at their own indexes, and a HardState that commits all of them. So the server executes
// them at its start, as any member does after a restart, without a waiting client.
//
// The member list is that of the base and two additional voters: the new member and one that never runs. The real
// members do not run either, so there is never a majority and no leader. So nothing is added to the log: no empty entry
// of a leader, no expired lease, no cluster version, no attributes. Conf changes are executed unchanged. The comparison
// ignores the two voters.
//
// One additional entry follows, a conf change that adds a third voter. Conf changes are executed under every alarm and
// for every user. When the scratch database has this voter, it has everything before it, and the server is killed.
//
// Members at different indexes are compared one after the other: the database at one index is the base for the next
// part.
//
// # What a difference means
//
// A member is refuted only if nothing but a wrong database explains the difference. The result is "not possible" if
// patch releases execute an entry at the first difference differently, if the base itself has the difference, if logs
// have different entries, or if parts of the database cannot be read. Normal differences are ignored: superseded
// records below the compact revision that a compaction removed or has not removed yet, tombstones there, lease TTLs
// that servers raise to their minimum, salts of passwords in plain text, bucket meta.
package confirm

// Package confirm gives a second opinion on a diagnosis: a real etcd server executes the committed log in a sandbox,
// and what it then holds is compared with each member's database.
//
// # How a server is made to execute a given log
//
// The scratch data dir belongs to a member of our own that no log knows. It starts from a base: the empty database of a
// new cluster with its first member, a backup, or a database received from a leader (.snap.db). Its WAL holds the
// entries after the base, unchanged and at their own indexes, and a HardState that says that all of them are committed.
// So the server executes them at its start, as any member does after a restart, without a client that waits.
//
// The member list is that of the base and two more voters: the member itself and one that never runs. Neither the real
// members run, so there is never a majority and no member is elected. Nothing is added to the log: no empty entry of a
// leader, no expired lease, no cluster version, no attributes. Conf changes are executed as they are. The two voters
// are left out where members are compared.
//
// One more entry follows, a conf change that adds a third voter. Conf changes are executed under every alarm and for
// every user. When the scratch database holds this voter, it holds everything before it, and the server is killed.
//
// Members at different indexes are compared one after the other: the database at one index is the base of the next
// stretch.
//
// # What a difference means
//
// A member is refuted only where nothing but a wrong database explains the difference. It is "not possible" where an
// entry that patch releases execute differently is at the first difference, where the base itself holds the difference,
// where logs hold different entries, or where parts of the database cannot be read. What differs between sound members
// is no difference: superseded records below the compact revision that a compaction removed or has not removed yet,
// tombstones there, lease TTLs that servers raise to their minimum, salts of passwords that came in plain text, bucket
// meta.
package confirm

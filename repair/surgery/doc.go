// Package surgery changes one thing in a copy of one member: its log, its database, or a few of its control values. The
// source is only read; the result is a new path, made beside it and renamed when it is complete.
//
// Every change goes the same way: the source is diagnosed (with other members, when they are named), the copy is
// changed, and the copy is diagnosed in the source's place. The change says what it loses. It is refused when it drops
// what the cluster may rely on, and when the second diagnosis, which replays the log against the database, finds an
// error that the first did not: then the change would make the member diverge. Each refusal names the flag that accepts
// its consequence; a refused result is not kept.
//
// What each change rests on:
//
//   - Log: records that the rolling CRC proves are kept in their order under a new chain; entries that are lost are
//     taken from other
//     members' logs where those know them committed, since committed entries are equal on all members. What cannot be had ends the log.
//   - Database: pages without damage are taken as they are, records in lost pages where their revision lies in what
//     damage took from the
//     tree, small buckets from the previous transaction where the newest is unreadable. Or the previous meta page is made the used one.
//   - Control values: rows of buckets meta, auth, alarm and members, and v2 keys in .snap files.
package surgery

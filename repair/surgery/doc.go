// Package surgery changes one thing in a copy of one member: its log, its database, or a few of its control values. It
// only reads the source. The result is a new path, built next to it and renamed when it is complete.
//
// Every change has the same steps. The source is diagnosed (with other members, if given), the copy is changed, and the
// copy is diagnosed in place of the source. The report lists the losses. A change is refused if it drops data on which
// the cluster may rely. It is also refused if the second diagnosis, which replays the log against the database, finds
// an error that the first did not: the change would make the member diverge. Each refusal names the flag that accepts
// its consequence. A refused result is removed.
//
// The basis of each change:
//
//   - Log: records that the rolling CRC proves are kept in order under a new chain. Lost entries come from other
//     members' logs if those know them committed, since committed entries are equal on all members. The log ends at the
//     first entry that is not available.
//   - Database: pages without damage are kept, and records in lost pages if damage has cut their revision from the
//     tree. Small buckets come from the previous transaction if the newest is unreadable. Alternatively, the previous
//     meta page becomes the used one.
//   - Control values: rows of buckets meta, auth, alarm and members, and v2 keys in .snap files.
package surgery

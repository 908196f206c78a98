// Package restore writes the data dirs of a whole cluster from one backup, all at once.
//
// etcdutl snapshot restore makes one member per call, from flags that must differ in one place and agree in all others.
// What goes wrong there cannot go wrong here:
//
//   - The same flags on every host, or a cluster list that names only oneself, make several clusters that believe to be
//     one. Here the
//     list is given once, and IDs are derived from it.
//   - Up to 3.4 the old members stayed in bucket members, and 3.6 and later read it. Here the bucket holds the new ones
//     only, and
//     meta/confState agrees.
//   - With the old token and URLs the new cluster has the old IDs, and members left over from it join in. Here the
//     token is new unless
//     it is given, and IDs of known old members are refused.
//   - With revisions below what clients have seen, watches and caches stay silent or wrong. Here the revision is raised
//     above the
//     newest one that any surviving source shows, and marked compacted.
//   - A flipped or truncated backup is noticed late or never. Here every layer is verified first.
//
// The dirs hold what etcdutl would write: WAL with one ConfChange per member, HardState and snapshot record at term 1,
// index n, the .snap of it, and the database with consistent_index n (etcdutl/snapshot/v3_snapshot.go, 3.5+; before 3.5
// clientv3/snapshot/v3_snapshot.go). They are diagnosed together before the result counts.
package restore

// Package restore writes the data dirs of a whole cluster from one backup, all at once.
//
// etcdutl snapshot restore makes one member per call, from flags that must differ in one place and agree in all others.
// This package avoids its typical errors:
//
//   - The same flags on every host, or a cluster list that names only the host itself, create several clusters that
//     believe to be one. Here the list is given once, and IDs are derived from it.
//   - Up to 3.4 the old members stayed in bucket members, which 3.6 and later read. Here the bucket has only the new
//     ones, and meta/confState agrees.
//   - With the old token and URLs the new cluster has the old IDs, and leftover members join it. Here the token is new
//     unless it is given, and IDs of known old members are refused.
//   - With revisions below those that clients have seen, watches and caches stay silent or wrong. Here the revision is
//     raised above the newest one that any surviving source shows, and marked compacted.
//   - A corrupt or truncated backup is noticed late or never. Here every layer is verified first.
//
// The dirs are what etcdutl would write: a WAL with one ConfChange per member, HardState and snapshot record at term 1,
// index n, the .snap file for it, and the database with consistent_index n (etcdutl/snapshot/v3_snapshot.go, 3.5+;
// before 3.5 clientv3/snapshot/v3_snapshot.go). They are diagnosed together before the result counts.
package restore

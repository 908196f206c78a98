package cause

import (
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

var walTornTail = Cause{
	ID: "wal-torn-tail", Title: "the last WAL record was only partly written",
	Doc: `A crash or power loss in the middle of an append leaves the last record of the last segment incomplete. At the next start etcd cuts it
off and keeps the old file as .broken. With a majority holding the entry nothing is lost: the member fetches it again.`,
	Refs:       refs("etcd-io/etcd", 5230, 6271),
	LookAlikes: "a value with long runs of zeros plus a flipped bit; a copy taken while the server wrote",
	Recovery:   "start the member (it cuts the tail and catches up); if no other member holds the entry, treat it as a lost write",
	Loss:       "none if another member holds the entry; on a single member the entry is gone",
	Match: func(in *Input) *Match {
		return byField(in, Proof, "a complete record behind the torn one", "W02", string(dumplog.DamageTornTail))
	},
}

var bboltPageDamage = Cause{
	ID: "bbolt-page-damage", Title: "pages of the database contradict each other",
	Doc: `A page that the tree refers to is not the page it should be: wrong number, type or order, a reference outside the file, or a page used
twice. bbolt stops with a panic at the first one. The log of the member is usually intact, and other members hold the same rows.`,
	Refs:       append(refs("etcd-io/etcd", 14211, 17084, 10010), refs("etcd-io/bbolt", 402, 446, 701)...),
	LookAlikes: "a torn copy of a running member (compare with the time of the copy)",
	Recovery:   "several members: reseed this one from a sound one; single member: salvage readable pages and replay the log",
	Loss:       "from nothing (other members) to the rows on the damaged pages",
	Match: func(in *Input) *Match {
		return byField(in, Proof, "the same page read soundly from another copy of this data dir", "D02", string(dumpdb.DamagePage), string(dumpdb.DamagePageID),
			string(dumpdb.DamageCycle), string(dumpdb.DamageDoubleUse), string(dumpdb.DamageKeyOrder))
	},
}

var backupHashMismatch = Cause{
	ID: "backup-hash-mismatch", Title: "the backup changed after it was saved",
	Doc: `The sha256 that snapshot save appended does not fit the bytes before it. etcdutl snapshot restore refuses the file; snapshot status does
not check it.`,
	LookAlikes: "a file that was opened read-write after it was saved (etcdutl hashkv, an older snapshot status): content may be sound, the proof is gone",
	Recovery:   "use another backup, or take a new one from a healthy member",
	Loss:       "unknown: any byte may have changed",
	Match: func(in *Input) *Match {
		for _, m := range in.Members {
			if m.DB != nil && m.DB.Trailer.State == "mismatch" {
				return &Match{Certainty: Proof, Members: []string{m.Label()}, Because: ids(in, "B01"), RefutedBy: "another copy of the file whose trailer fits"}
			}
		}
		return nil
	},
}

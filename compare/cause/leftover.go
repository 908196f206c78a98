package cause

var defragLeftover = Cause{
	ID: "defrag-leftover-file", Title: "a defragmentation was interrupted and left its file",
	Doc: `A defragmentation copies the database to db.tmp* beside it and renames the copy. The process ended in between. From 3.2.29, 3.3.19 and 3.4.4 on every
try has a name of its own and is deleted at the next start; before, the next defragmentation added to the old file (see defrag-orphan-merged).
Proven by the file, unless the copy was taken while a defragmentation ran.`,
	Refs:       []string{"https://github.com/etcd-io/etcd/pull/11613"},
	LookAlikes: "a defragmentation that was running while the data dir was copied",
	Recovery:   "keep a copy, then delete the file; on 3.5.0 to 3.5.5 look for entries applied twice (C03, C04)",
	Loss:       "none",
	Match: func(in *Input) *Match {
		return besideVerdict(byField(in, "a defragmentation that was running when the data dir was copied", "S04",
			"db.tmp"))
	},
}

var snapDirLeftovers = Cause{
	ID: "snap-dir-leftovers", Title: "files were left in the snap folder that nothing needs",
	Doc: `Aborted transfers of snapshots (tmp*), snapshots that could not be read (*.broken) and received databases that were installed or overtaken
(<index>.snap.db). Up to 3.4.19 tmp* files were never deleted, up to 3.1.14 and 3.2.19 old .snap.db files neither.
Proven: the log names no snapshot that needs them.`,
	Affected: []string{"tmp*: up to 3.4.19", ".snap.db: up to 3.1.14, 3.2.19"},
	FixedIn:  []string{"3.4.20, 3.5.0", "3.1.15, 3.2.20, 3.3.0"},
	Refs: append(refs("etcd-io/etcd", 12837), "https://github.com/etcd-io/etcd/pull/14246",
		"https://github.com/etcd-io/etcd/pull/7967"),
	LookAlikes: "a received database that waits to be installed (its index is above the consistent index and the log " +
		"names it): never delete that one",
	Recovery: "delete them after copying",
	Loss:     "none",
	Match: func(in *Input) *Match {
		return besideVerdict(byField(in, "a snapshot record of the log that needs one of the files", "S04", "leftover"))
	},
}

// besideVerdict marks a match that explains something beside the verdict; it passes on nil.
func besideVerdict(m *Match) *Match {
	if m != nil {
		m.Aside = true
	}
	return m
}

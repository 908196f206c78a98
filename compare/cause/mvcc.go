package cause

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
)

var mvccContradiction = Cause{
	ID: "mvcc-record-contradiction", Title: "records of bucket key contradict their own revision or the history of their key",
	Doc: `A record names another revision than the one it stands at, a version that does not follow the one before, a create revision that is not that
of the key's first put, or revisions are missing above the compact revision. No server writes that: a page was damaged in a way that its
structure does not show, a tool of another kind wrote the file, or it was edited. A record whose key or value does not decode is one of them. The
proof is of the contradiction; what caused it the file does not tell.`,
	LookAlikes: "compaction, which removes the start of a key's life and leaves gaps below the compact revision " +
		"only; restore --bump-revision",
	Recovery: "reseed the member; of a single member or a backup export what is readable",
	Loss:     "the records named",
	Match: func(in *Input) *Match {
		m := aside(in, "K04", "the same records read from another copy of this database",
			func(check.Finding) bool { return true })
		if m != nil {
			// Where the log or other members show what should be there, that says more than the state of the file.
			m.Aside = len(in.Findings["K01"])+len(in.Findings["K03"]) > 0 &&
				!slices.ContainsFunc(in.Findings["K04"], check.Undecodable)
		}
		return m
	},
}

var revisionDecrease = Cause{
	ID: "revision-decrease-after-compaction-crash", Title: "a crash in a compaction of trailing tombstones takes the " +
		"revision back",
	Doc: `The newest revisions were deletes, a compaction at the newest one removed their tombstones, and the server ended before it stored that the
compaction was finished. A release up to 3.4.31 or 3.5.13 that starts on this database takes the revision of the newest record that is left
for the current one and gives the numbers above it to other writes: the member's revisions then differ from its peers' for good.
Proven of the state: scheduledCompactRev lies above the newest record and above finishedCompactRev. The damage is strongly shown by a put at
the compact revision of one member, where the others hold none and stand at higher revisions with the same content.`,
	Affected: []string{"up to 3.4.31", "3.5.0 - 3.5.13"},
	FixedIn:  []string{"3.4.32", "3.5.14", "3.6.0"},
	Refs: append(refs("etcd-io/etcd", 17780, 16693), "https://github.com/etcd-io/etcd/pull/17815",
		"https://github.com/etcd-io/etcd/pull/17864"),
	LookAlikes: "a compaction at the head that was finished (finished equals scheduled); restore --bump-revision, " +
		"which leaves its empty record there",
	Recovery: "start the member with a release that has the fix; if an older one was started on it already, reseed " +
		"the member, or bump the revision if it is the only one",
	Loss: "no key; if the numbers were given twice, watchers missed events",
	Match: func(in *Input) *Match {
		m := aside(in, "K10", "a record at the scheduled revision; a finished compaction",
			func(f check.Finding) bool { return fieldIs(f, []string{"scheduledCompactRev"}) })
		if done := aside(in, "K10", "contents that differ in more than revision numbers",
			func(f check.Finding) bool { return f.Severity == check.Critical }); done != nil {
			m, done.Certainty, done.Aside = done, Strong, false
			m.Because = append(m.Because, ids(in, "K03", "K02", "K01")...)
		}
		return m
	},
}

var tombstoneDropped = Cause{
	ID: "tombstone-dropped-at-compact-revision", Title: "releases of two kinds compacted exactly at a delete",
	Doc: `A compaction at the revision of a delete removed its tombstone up to 3.4.33 and 3.5.15 and keeps it since. In a cluster that runs or ran both,
the record is there on some members only. The key is gone on all of them, so it is a difference of releases, not of data.
Proven when nothing but tombstones at the finished compact revision differs.`,
	Affected: []string{"up to 3.4.33", "3.5.0 - 3.5.15"},
	FixedIn:  []string{"3.4.34", "3.5.16", "3.6.0"},
	Refs: append(refs("etcd-io/etcd", 18089), "https://github.com/etcd-io/etcd/pull/18274",
		"https://github.com/etcd-io/etcd/pull/18474"),
	LookAlikes: "a delete that is really missing: the key is then alive on one side, and the keys differ",
	Recovery:   "none needed",
	Loss:       "none of data; watchers that started at that revision may have missed a delete",
	Match: func(in *Input) *Match {
		if len(in.Findings["K01"]) > 0 {
			return nil
		}
		return aside(in, "K07", "the key of one of the tombstones alive on a member",
			func(check.Finding) bool { return true })
	},
}

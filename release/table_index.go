package release

// Rules of meta/consistent_index: which entries a restart executes again.
var (
	// IndexWithAuth: before, auth entries after the last key write were executed again, which raised the auth revision.
	IndexWithAuth = &Rule{
		ID:     "index-with-auth",
		What:   "a change of auth stores the consistent index with it",
		In:     since(Release{3, 21}, Release{4, 8}),
		Source: "auth/store.go @ v3.4.8, saveConsistentIndex; from 3.5.0 index-with-every-entry",
	}
	// IndexWithEveryEntry: before, only key writes and snapshots moved it, and 3.3.21+ and 3.4.8+ changes of auth.
	IndexWithEveryEntry = &Rule{
		ID:     "index-with-every-entry",
		What:   "every commit of the database stores the index of the last entry",
		In:     since(Release{5, 0}),
		Source: "server/etcdserver/backend.go, OnPreCommitUnsafe",
	}
	// IndexAtomic: 3.5.0 to 3.5.2 stored the index before the entry was executed.
	IndexAtomic = &Rule{
		ID:     "index-atomic",
		What:   "the index is stored together with the effect of its entry",
		In:     Spans{{Until: Release{5, 0}}, {From: Release{5, 3}}},
		Source: "server/etcdserver/cindex/cindex.go, SetConsistentApplyingIndex",
	}
	// IndexNeedsTerm: an index of a lower term than the stored one was not stored.
	IndexNeedsTerm = &Rule{
		ID:     "index-needs-term",
		What:   "the index is not stored while meta/term is above the term of the log",
		In:     within(Release{5, 0}, Release{5, 3}),
		Source: "server/etcdserver/cindex/cindex.go @ v3.5.0, UnsafeUpdateConsistentIndex",
	}
	// DefragLosesIndex: entries after the last commit before a defragmentation were executed twice.
	DefragLosesIndex = &Rule{
		ID:     "defrag-loses-index",
		What:   "a defragmentation stores data without the index of its last entry",
		In:     within(Release{5, 0}, Release{5, 6}),
		Source: "server/mvcc/backend/batch_tx.go, unsafeCommit",
	}
	// TermInMeta: rows meta/term and meta/confState.
	TermInMeta = &Rule{
		ID:     "term-in-meta",
		What:   "bucket meta holds the term of the index, and raft's configuration after a conf change",
		In:     since(Release{5, 0}),
		Source: "server/etcdserver/cindex/cindex.go; server/etcdserver/backend.go",
	}
)

var indexRules = []*Rule{IndexWithAuth, IndexWithEveryEntry, IndexAtomic, IndexNeedsTerm, DefragLosesIndex, TermInMeta}

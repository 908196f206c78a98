package cause

var cursorLastEmpty = Cause{
	ID: "bbolt-cursor-last-empty-page", Title: "the last page of a bucket is empty, and old libraries do not find " +
		"its last row",
	Doc: `Rows at the right edge of a bucket were deleted and left an empty leaf. bbolt up to 1.3.6 returns no row when it is asked for the last one of
such a bucket. The server does not ask; tools that take the last key of bucket key for the current revision then report too low a number.
Proven by the empty page: a scan of the bucket finds rows before it.`,
	Affected:   []string{"bbolt up to 1.3.6 (etcd 3.4.23, 3.5.7 and older)"},
	FixedIn:    []string{"bbolt 1.3.7"},
	Refs:       []string{"https://github.com/etcd-io/bbolt/pull/341"},
	LookAlikes: "none",
	Recovery:   "read the file with a newer library; a defragmentation removes the page",
	Loss:       "none",
	Match: func(in *Input) *Match {
		return aside(in, "D09", "rows on that page in the same transaction", every)
	},
}

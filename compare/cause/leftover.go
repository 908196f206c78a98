package cause

var defragLeftover = described(Cause{
	ID: "defrag-leftover-file",
	Match: func(in *Input) *Match {
		return besideVerdict(byField(in, "a defragmentation that was running when the data dir was copied", "S04",
			"db.tmp"))
	},
})

var snapDirLeftovers = described(Cause{
	ID: "snap-dir-leftovers",
	Match: func(in *Input) *Match {
		return besideVerdict(byField(in, "a snapshot record of the log that needs one of the files", "S04", "leftover"))
	},
})

// besideVerdict marks a match that explains something beside the verdict; it passes on nil.
func besideVerdict(m *Match) *Match {
	if m != nil {
		m.Secondary = true
	}
	return m
}

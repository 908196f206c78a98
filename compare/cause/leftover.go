package cause

import "github.com/etcd-medic/etcd-medic/compare/check"

var defragLeftover = described(Cause{
	ID: DefragLeftoverFile,
	Match: func(in *Input) *Match {
		return besideVerdict(byKind(in, "a defragmentation that was running when the data dir was copied",
			check.KindDefragLeftover))
	},
})

var snapDirLeftovers = described(Cause{
	ID: SnapDirLeftovers,
	Match: func(in *Input) *Match {
		return besideVerdict(byKind(in, "a snapshot record of the log that needs one of the files",
			check.KindSnapLeftover))
	},
})

// besideVerdict makes a match secondary: it explains something other than the verdict. It returns nil for nil.
func besideVerdict(m *Match) *Match {
	if m != nil {
		m.Secondary = true
	}
	return m
}

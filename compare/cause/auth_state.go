package cause

import (
	"github.com/etcd-medic/etcd-medic/compare/check"
)

var authStructureBroken = described(Cause{
	ID: AuthStructureBroken,
	Match: func(in *Input) *Match {
		m := aside(in, check.A05, "the rows that are missing, read from another copy of this database",
			func(check.Finding) bool { return true })
		if m == nil {
			m = aside(in, check.B05, "the rows that are missing, read from another copy of this backup",
				func(f check.Finding) bool { return f.Severity != check.Warning })
		}
		if m != nil {
			m.Secondary = false
		}
		return m
	},
})

var authSecretsInWAL = described(Cause{
	ID: AuthSecretsInWAL,
	Match: func(in *Input) *Match {
		return aside(in, check.A06, "entries whose password field is empty", func(check.Finding) bool { return true })
	},
})

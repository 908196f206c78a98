package verdict

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
)

// TestLag: a member lags where its log ends below what is committed and an entry after its end changes data.
func TestLag(t *testing.T) {
	for name, c := range map[string]struct {
		last, change, behind uint64
	}{
		"at the commit":                   {9, 7, 0},
		"at the commit, which changes":    {9, 9, 0},
		"above it":                        {12, 9, 0},
		"above it, and later ones change": {12, 13, 0},
		"below it":                        {5, 6, 4},
		"nothing changes after its end":   {5, 5, 0},
		"nothing changes at all":          {5, 0, 0},
	} {
		ms := sources(evidence.KindDataDir, evidence.KindDataDir)
		for _, m := range ms {
			lists(m, 9, evidence.Membership{})
		}
		ms[0].WAL.Summary.LastIndex = c.last
		rp := &replay.Result{First: 1, Last: 9, Survey: &replay.Survey{LastChange: c.change},
			Members: []*replay.MemberResult{{}, {}}}
		rk := &ranking{Input: &Input{Input: &check.Input{Members: ms, Replay: rp}}}
		if got := rk.standing(0, ms[0], 9).behind; got != c.behind {
			t.Errorf("%s: %d, want %d", name, int64(got), c.behind)
		}
	}
}

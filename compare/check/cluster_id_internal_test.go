package check

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestSharesRequests: logs that hold the same entries are of one cluster if these are more than another cluster can
// hold as well, as far as either log shows. The order of the two does not matter.
func TestSharesRequests(t *testing.T) {
	log := func(from, to uint64, other byte, terms int) *evidence.Member {
		m := &evidence.Member{WAL: evidence.WAL{Log: &dumplog.Log{}, Sums: evidence.NewLogSums(),
			LastByTerm: make([]evidence.TermEnd, terms)}}
		for i := from; i <= to; i++ {
			m.WAL.Sums.Note(&dumplog.Entry{Index: i, Term: 9, Data: []byte{byte(i), other}})
		}
		m.WAL.Summary.LastIndex = to
		return m
	}
	for name, c := range map[string]struct {
		a, b *evidence.Member
		want bool
	}{
		"the same requests":              {log(1, 300, 0, 1), log(1, 300, 0, 1), true},
		"others":                         {log(1, 300, 0, 1), log(1, 300, 1, 1), false},
		"they may begin terms":           {log(1, 300, 0, 300), log(1, 300, 0, 300), false},
		"one log shows that they do not": {log(1, 300, 0, 300), log(1, 300, 0, 1), true},
		"one log is not summed": {log(1, 300, 0, 1),
			&evidence.Member{WAL: evidence.WAL{Log: &dumplog.Log{}}}, false},
		"one has no log":                                     {log(1, 300, 0, 1), &evidence.Member{}, false},
		"what one holds is only elsewhere":                   {log(1, 300, 0, 1), log(600, 900, 0, 1), false},
		"short logs, one of which lags":                      {log(1, 60, 0, 3), log(1, 40, 0, 3), true},
		"one lags, the others may begin terms":               {log(1, 300, 0, 300), log(1, 40, 0, 300), false},
		"more entries than leaders, though not in one block": {log(1, 300, 0, 40), log(1, 280, 0, 40), true},
	} {
		if got := sharesRequests(c.a, c.b); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		if got := sharesRequests(c.b, c.a); got != c.want {
			t.Errorf("%s, in the other order: %v", name, got)
		}
	}
}

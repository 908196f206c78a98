package backup

import (
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

// TestFreshness: B11 is made only where a bound is given, is violated above one, and is not made where the age or the
// lag is not known.
func TestFreshness(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	old := func(d time.Duration) Freshness { return Freshness{MaxAge: time.Hour, Modified: now.Add(-d), Now: now} }
	lags := Compared{Source: "node1", SameHistory: check.Holds, RevisionsBehind: 8}
	unknown := Compared{Source: "node2", SameHistory: check.NotChecked}
	for name, c := range map[string]struct {
		f       Freshness
		against []Compared
		want    check.Outcome
		says    string
	}{
		"no bound":           {f: Freshness{Modified: now.Add(-9000 * time.Hour), Now: now}},
		"young":              {f: old(time.Hour), want: check.Holds},
		"old":                {f: old(2 * time.Hour), want: check.Violated, says: "the backup is 2h0m0s old"},
		"of unknown age":     {f: Freshness{MaxAge: time.Hour, Now: now}, want: check.NotChecked, says: "not known when"},
		"not too far behind": {f: Freshness{Behind: true, MaxBehind: 8}, against: []Compared{lags}, want: check.Holds},
		"too far behind": {f: Freshness{Behind: true, MaxBehind: 7}, against: []Compared{lags},
			want: check.Violated, says: "8 revisions behind node1"},
		"nothing to compare": {f: Freshness{Behind: true}, want: check.NotChecked, says: "no source of --against"},
		"a lag that is unknown": {f: Freshness{Behind: true}, against: []Compared{unknown},
			want: check.NotChecked, says: "node2 is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &compare.Report{Backup: &compare.Backup{}}
			if c.against != nil {
				r.Backup.Against = &Against{Compared: c.against}
			}
			m := &evidence.Member{Source: &evidence.Source{Name: "backup.db"}, DB: &evidence.DB{File: "backup.db"}}
			c.f.judge(r, m)
			if c.want == "" {
				if len(r.Checks) > 0 || r.Backup.Age != nil {
					t.Errorf("%+v", r.Checks)
				}
				return
			}
			if len(r.Checks) != 1 || r.Checks[0].ID != check.B11 || r.Checks[0].Outcome != c.want {
				t.Fatalf("%+v, want %s", r.Checks, c.want)
			}
			said := r.Checks[0].Reason
			for _, f := range r.Findings {
				said += f.Title
			}
			if !strings.Contains(said, c.says) {
				t.Errorf("%q, want %q", said, c.says)
			}
			if aged := r.Backup.Age != nil; aged != !c.f.Modified.IsZero() {
				t.Errorf("age %v", r.Backup.Age)
			}
		})
	}
}

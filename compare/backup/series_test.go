package backup_test

import (
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/backup"
	"github.com/etcd-medic/etcd-medic/compare/backup/locate"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// saved is a sound backup of a series, day days after the first.
type saved struct {
	name    string
	day     int
	rev     int64
	index   uint64
	members []dumpdb.ID
	removed []dumplog.ID
}

func judged(list ...saved) []*compare.Report {
	var items []*locate.Item
	var reports []*compare.Report
	for _, s := range list {
		m := evidence.Facts{DB: &evidence.DBFacts{CurrentRevision: &s.rev, ConsistentIndex: &s.index}}
		m.Membership.Removed = s.removed
		for _, id := range s.members {
			m.Membership.Members = append(m.Membership.Members, dumpdb.Member{ID: id})
		}
		items = append(items, &locate.Item{Given: "d", Shown: "d/" + s.name, Series: "d/*", FromFolder: true,
			Modified: time.Unix(int64(1e9+86400*s.day), 0)})
		reports = append(reports, &compare.Report{Backup: &compare.Backup{}, Members: []evidence.Facts{m},
			Sources: []compare.Source{{Name: s.name, Where: "d/" + s.name}},
			Verdict: compare.Verdict{Health: check.Healthy, Class: check.ClassBackupGood}})
	}
	backup.JudgeSeries(items, reports)
	return reports
}

// TestSeries: a backup that does not continue the earlier one of its series has a warning and stays good.
func TestSeries(t *testing.T) {
	one, two := []dumpdb.ID{1}, []dumpdb.ID{2}
	for name, c := range map[string]struct {
		earlier, later saved
		want           string
	}{
		"continued":         {saved{"1", 1, 10, 20, one, nil}, saved{"2", 2, 10, 19, one, nil}, ""},
		"lower revision":    {saved{"1", 1, 10, 20, one, nil}, saved{"2", 2, 9, 20, one, nil}, "revision 9 is lower than 10"},
		"lower index":       {saved{"1", 1, 10, 20, one, nil}, saved{"2", 2, 11, 8, one, nil}, "raft index 8 is lower"},
		"other members":     {saved{"1", 1, 10, 20, one, nil}, saved{"2", 2, 99, 30, two, nil}, "no member in common"},
		"both":              {saved{"1", 1, 10, 20, one, nil}, saved{"2", 2, 9, 30, two, nil}, "its revision 9 is lower than 10"},
		"member replaced":   {saved{"1", 1, 10, 20, one, nil}, saved{"2", 2, 99, 30, two, []dumplog.ID{1}}, ""},
		"no members listed": {saved{"1", 1, 10, 20, nil, nil}, saved{"2", 2, 99, 30, two, nil}, ""},
		"order contradicts": {saved{"2", 1, 10, 20, one, nil}, saved{"1", 2, 9, 20, two, nil}, ""},
	} {
		for _, r := range [][]*compare.Report{judged(c.earlier, c.later), judged(c.later, c.earlier)} {
			later := r[0]
			if later.Sources[0].Name == c.earlier.name {
				later = r[1]
			}
			got := backup.WarningOf(later)
			if (got != "") != (c.want != "") || !strings.Contains(got, c.want) ||
				later.Verdict.Class != check.ClassBackupGood ||
				c.want != "" && !strings.Contains(backup.LineOf(later).Content, "warning: "+got) {
				t.Errorf("%s: %q, %+v", name, got, later.Verdict)
			}
		}
	}
}

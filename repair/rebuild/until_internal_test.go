package rebuild

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// TestUntilTime: a time in the log is a lower bound. The rebuild stops before the first entry with a later one, and
// says how many entries may be on either side; without a later one it refuses.
func TestUntilTime(t *testing.T) {
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		marks        map[uint64]int // the index of an entry, seconds after noon
		base, commit uint64
		stop         uint64
		says         string
	}{
		"no time at all":    {nil, 0, 20, 0, "the logs contain no time"},
		"only earlier ones": {map[uint64]int{5: -9, 8: -3}, 0, 20, 0, "place among the entries from 8 on is unknown"},
		"only later ones":   {map[uint64]int{5: 3}, 0, 20, 4, "the first time in the log is after the requested time"},
		"next to it":        {map[uint64]int{5: -1, 6: 1}, 0, 20, 5, "entry 5 was proposed at"},
		"one between": {map[uint64]int{5: -1, 7: 1}, 0, 20, 6, "The 1 entries between them carry no time, or one " +
			"that only bounds theirs from below: they were executed, and may be on either side"},
		"five between":             {map[uint64]int{5: -1, 11: 1}, 0, 20, 10, "The 5 entries between"},
		"the rest not committed":   {map[uint64]int{5: -1, 11: 1}, 0, 7, 7, "The 2 entries between"},
		"the base is right before": {map[uint64]int{11: 1}, 10, 20, 10, "the first time"},
		"the base is later":        {map[uint64]int{11: 1}, 11, 20, 0, "the base is at index 11, which is later"},
	} {
		sv := &survey{times: dumplog.Times{Near: noon, Split: noon}}
		for i := range uint64(20) {
			if s, ok := c.marks[i]; ok {
				at := noon.Add(time.Duration(s) * time.Second).Format("2006-01-02T15:04:05.000000Z")
				sv.times.Add(&dumplog.Entry{Index: i}, &dumplog.Request{Kind: dumplog.KindPut,
					Put: &dumplog.PutRequest{Key: []byte("/registry/leases/n/1"), Value: fmt.Appendf(nil,
						`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","spec":{"renewTime":%q}}`, at)}})
			}
		}
		b := &builder{sv: sv, commit: c.commit, from: Point{Index: c.base}, res: &Result{},
			o: Options{To: Target{Time: noon}}}
		err := b.untilTime()
		text := strings.Join(b.res.Notes, "\n")
		if err != nil {
			text = err.Error()
		}
		if b.stop != c.stop || (err != nil) != (c.stop == 0) || !strings.Contains(text, c.says) {
			t.Errorf("%s: stops at %d, want %d: %s", name, b.stop, c.stop, text)
		}
	}
}

// TestTargetBeforeBase: what the base already has beyond the target cannot be taken back.
func TestTargetBeforeBase(t *testing.T) {
	for name, c := range map[string]struct {
		to   Target
		stop uint64
		says string
	}{
		"index":                  {Target{Index: 15}, 15, ""},
		"index of the base":      {Target{Index: 10}, 10, ""},
		"index below":            {Target{Index: 9}, 0, "the base is already at index 10, above index 9"},
		"last committed index":   {Target{Index: 20}, 20, ""},
		"index above":            {Target{Index: 21}, 0, "entry 21 is not proven committed"},
		"revision of the base":   {Target{Revision: 7}, 0, ""},
		"revision below":         {Target{Revision: 6}, 0, "the base is already at revision 7, above revision 6"},
		"before a key":           {Target{Before: []byte("k")}, 0, ""},
		"the last committed one": {Target{Last: true}, 20, ""},
	} {
		b := &builder{commit: 20, from: Point{Index: 10, Revision: 7}, o: Options{To: c.to}, sv: &survey{}}
		err := b.target()
		if b.stop != c.stop || (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: stops at %d, %v", name, b.stop, err)
		}
	}
}

// TestSettleVersion: a release that a source shows is used as it is. Without one the cluster version of the log is,
// and without that too the result has the form of 3.6 and the rules are not known.
func TestSettleVersion(t *testing.T) {
	for name, c := range map[string]struct {
		shown, cluster release.Version
		etcd, note     string
		rules          bool
	}{
		"shown":           {release.Exact(5, 9), release.AnyOf(4), "3.5.9", "", true},
		"cluster version": {release.Version{}, release.AnyOf(4), "3.4", "the log's cluster version is 3.4", true},
		"neither": {release.Version{}, release.Version{}, "3.6", "the result has the form of 3.6, and what " +
			"releases execute differently counts as doubtful", false},
	} {
		b := &builder{version: c.shown, sv: &survey{cluster: c.cluster}, res: &Result{}}
		b.settleVersion()
		notes := strings.Join(b.res.Notes, "\n")
		if b.res.Etcd != c.etcd || b.rules.Known() != c.rules || (notes == "") != (c.note == "") ||
			!strings.Contains(notes, c.note) {
			t.Errorf("%s: %q, rules %s: %s", name, b.res.Etcd, b.rules, notes)
		}
	}
	if got := clipped(slices.Repeat([]uint64{1}, 21)); len(got) != 20 {
		t.Errorf("%d listed", len(got))
	}
	if got := clipped([]uint64{4}); len(got) != 1 {
		t.Errorf("%d listed", len(got))
	}
}

// TestAnchoredWithoutWrites: where the log writes no key up to the base's index, only IDs and terms say that both
// belong together. The result says so, and it does not suffice where the base may be older than a restore and has no
// term.
func TestAnchoredWithoutWrites(t *testing.T) {
	log := []*evidence.Member{{WAL: evidence.WAL{Log: &dumplog.Log{}}}}
	restored := []*evidence.Member{{WAL: evidence.WAL{Log: &dumplog.Log{},
		Summary: dumplog.Summary{Start: dumplog.StartRestore}}}}
	backup := &evidence.Member{}
	for name, c := range map[string]struct {
		base    *evidence.Member
		logs    []*evidence.Member
		term    uint64
		refused bool
		noted   bool
	}{
		"no base":                        {nil, log, 0, false, false},
		"no log":                         {backup, nil, 0, false, false},
		"both":                           {backup, log, 0, false, true},
		"a restored log":                 {backup, restored, 0, true, false},
		"a restored log, the same terms": {backup, restored, 5, false, true},
		"a base with the restored log":   {restored[0], restored, 0, false, true},
		"nothing but a restored log":     {nil, restored, 0, false, false},
	} {
		b := &builder{base: c.base, logs: c.logs, from: Point{Index: 9, Term: c.term}, sv: &survey{}, res: &Result{}}
		if c.logs != nil {
			b.res.Logs = []string{"a"}
		}
		err := (&engine{b: b}).anchored()
		if (err != nil) != c.refused || err != nil && !strings.Contains(err.Error(), "writes no key up to") {
			t.Errorf("%s: %v", name, err)
		}
		if notes := strings.Join(b.res.Notes, "\n"); strings.Contains(notes, "only IDs and terms") != c.noted {
			t.Errorf("%s: %q", name, notes)
		}
	}
}

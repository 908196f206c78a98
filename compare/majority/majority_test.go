package majority_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/majority"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

const cluster = 0xc1

// voter returns the ID of a member by its letter.
func voter(letter rune) uint64 { return 0xa0 + uint64(letter-'a') + 1 }

func voters(letters string) (ids []uint64) {
	for _, l := range letters {
		ids = append(ids, voter(l))
	}
	return ids
}

// stretch are entries of one term, up to an index.
type stretch struct{ term, last uint64 }

// memberLog is the data dir of one member: the bootstrap of the voters, then puts. The log ends with the HardState.
type memberLog struct {
	of      rune
	entries []stretch
	// term and commit are those of the last HardState.
	term, commit uint64
	// founded are the voters of the bootstrap, or of a restore. With from, the log begins there with a snapshot.
	founded  string
	restored bool
	from     uint64
	// stated writes the HardState twice, so that one is left where the other is damaged.
	stated bool
	// conf are conf changes instead of puts.
	conf map[uint64]raftpb.ConfChange
	// first distinguishes the requests of another cluster with the same ID.
	first uint64
	// edit changes the data before it is written, spoil the files after that.
	edit  func(h *clustertest.Hand)
	spoil func(t *testing.T, dir string)
	as    uint64 // the cluster ID, if it is another one
}

func (l *memberLog) write(t *testing.T, name string) evidence.Spec {
	t.Helper()
	id := uint64(cluster)
	if l.as != 0 {
		id = l.as
	}
	h := clustertest.NewHand(t, t.TempDir(), name, voter(l.of), id)
	next := uint64(len(l.founded)) + 1
	if l.from > 0 {
		next = l.from + 1
		h.State(2, 0, l.from)
		h.Snapshot(2, l.from, voters(l.founded)...)
	} else {
		h.Found(l.restored, voters(l.founded)...)
	}
	for _, s := range l.entries {
		for ; next <= s.last; next++ {
			if cc, ok := l.conf[next]; ok {
				h.Conf(s.term, next, cc)
				continue
			}
			h.Put(s.term, next, clustertest.RequestID(voter('a'), 1000+l.first, next), "key", "value", false)
		}
	}
	for range 2 {
		h.State(l.term, 0, l.commit)
		if !l.stated {
			break
		}
	}
	if l.edit != nil {
		l.edit(h)
	}
	dir := h.Close(l.commit, l.term)
	if l.spoil != nil {
		l.spoil(t, dir)
	}
	return evidence.Spec{Name: name, Where: dir}
}

// record is where the last record of a kind is: the entry of an index, or the last HardState with 0.
func record(t *testing.T, dir string, index uint64) (file string, rec dumplog.Record) {
	t.Helper()
	wal := filepath.Join(dir, "member", "wal")
	l, err := dumplog.Open(wal)
	if err != nil {
		t.Fatal(err)
	}
	for r, err := range l.Records(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		e := raftpb.Entry{}
		switch {
		case index == 0 && r.Type == dumplog.RecordState:
		case index > 0 && r.Type == dumplog.RecordEntry && e.Unmarshal(r.Data) == nil && e.Index == index:
		default:
			continue
		}
		rec = r
		rec.Data = nil
	}
	if rec.Len == 0 {
		t.Fatalf("no record of entry %d", index)
	}
	return filepath.Join(wal, rec.Segment), rec
}

// flip damages the record of an entry, or the last HardState.
func flip(index uint64) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		file, rec := record(t, dir, index)
		overwrite(t, file, rec.Offset+rec.Len-int64(rec.Pad)-2, 0xff, 0xfe)
	}
}

// cutFile ends the file inside of the last HardState.
func cutFile(t *testing.T, dir string) {
	t.Helper()
	file, rec := record(t, dir, 0)
	if err := os.Truncate(file, rec.Offset+12); err != nil {
		t.Fatal(err)
	}
}

// unfinished leaves the begin of an entry above the others, and zeros in the space that the server has reserved.
func unfinished(l memberLog) memberLog {
	return with(l, func(l *memberLog) {
		l.edit = func(h *clustertest.Hand) {
			h.Put(2, 13, clustertest.RequestID(voter('a'), 1000, 13), "key", strings.Repeat("value", 1000), false)
		}
		l.spoil = func(t *testing.T, dir string) {
			t.Helper()
			file, rec := record(t, dir, 13)
			overwrite(t, file, rec.Offset+100, make([]byte, rec.Len-100)...)
		}
	})
}

func overwrite(t *testing.T, file string, at int64, with ...byte) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(with, at); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// member is a log in term 2 that knows the commit index 10.
func member(of rune, last uint64) memberLog {
	return memberLog{of: of, founded: "abc", entries: []stretch{{2, last}}, term: 2, commit: 10}
}

func with(l memberLog, change func(l *memberLog)) memberLog {
	change(&l)
	return l
}

func of(founded string, logs ...memberLog) []memberLog {
	for i := range logs {
		logs[i].founded = founded
	}
	return logs
}

// inTerm ends a log in a newer term, in which it holds no entry.
func inTerm(l memberLog, term uint64) memberLog {
	return with(l, func(l *memberLog) { l.term = term })
}

func spoiled(l memberLog, spoil func(t *testing.T, dir string)) memberLog {
	return with(l, func(l *memberLog) { l.spoil, l.stated = spoil, true })
}

// at makes the entry at an index a conf change.
func at(index uint64, cc raftpb.ConfChange, logs ...memberLog) []memberLog {
	for i := range logs {
		logs[i].conf = map[uint64]raftpb.ConfChange{index: cc}
	}
	return logs
}

func all(logs []memberLog, change func(l *memberLog)) []memberLog {
	for i := range logs {
		change(&logs[i])
	}
	return logs
}

// TestFind: want is the index that is found, 0 for none, and of whom the logs are that count.
func TestFind(t *testing.T) {
	for name, c := range map[string]struct {
		logs []memberLog
		want uint64
		by   string
	}{
		"two of three":                {[]memberLog{member('a', 12), member('b', 12), member('c', 11)}, 12, "ab"},
		"two of three, one not given": {[]memberLog{member('a', 12), member('c', 12)}, 12, "ac"},
		"all have more than others":   {[]memberLog{member('a', 14), member('b', 13), member('c', 12)}, 13, "ab"},
		"one of three":                {[]memberLog{member('a', 12)}, 0, ""},
		"one more on the leader":      {[]memberLog{member('a', 12), member('b', 10), member('c', 10)}, 0, ""},
		"known to be committed":       {[]memberLog{member('a', 10), member('b', 10), member('c', 10)}, 0, ""},
		"the only voter":              {of("a", member('a', 12)), 12, "a"},
		"two of four":                 {of("abcd", member('a', 12), member('b', 12), member('c', 11)), 11, "abc"},
		"two of four, none else":      {of("abcd", member('a', 12), member('b', 12)), 0, ""},
		"three of four":               {of("abcd", member('a', 12), member('b', 12), member('d', 12)), 12, "abd"},
	} {
		t.Run(name, func(t *testing.T) { found(t, c.logs, c.want, c.by) })
	}
}

// TestTerms: the entry has to be of the current term of those that hold it.
func TestTerms(t *testing.T) {
	// An entry of term 2 that the leader of term 4 has sent to a majority may still be replaced by the leader of
	// term 3, who has another entry there (raft paper, figure 8). One of its own term decides.
	fig8 := func(own uint64) []memberLog {
		logs := of("abcde", member('a', 12), member('b', 12), member('c', 12), member('d', 11), member('e', 11))
		for i := range logs[:3] {
			logs[i].term = 4
			if own > 0 {
				logs[i].entries = append(logs[i].entries, stretch{4, own})
			}
		}
		logs[4].entries, logs[4].term = append(logs[4].entries, stretch{3, 12}), 3
		return logs
	}
	for name, c := range map[string]struct {
		logs []memberLog
		want uint64
		by   string
	}{
		"figure 8":                         {fig8(0), 0, ""},
		"figure 8, with an own entry":      {fig8(13), 13, "abc"},
		"a holder voted in a newer term":   {[]memberLog{member('a', 12), inTerm(member('b', 12), 3), member('c', 11)}, 11, "ac"},
		"only that one":                    {[]memberLog{member('a', 12), inTerm(member('b', 12), 3)}, 0, ""},
		"the third is in a newer term":     {[]memberLog{member('a', 12), member('b', 12), inTerm(member('c', 11), 3)}, 12, "ab"},
		"all are in a newer term":          {[]memberLog{inTerm(member('a', 12), 3), inTerm(member('b', 12), 3)}, 0, ""},
		"another entry of a newer term":    {[]memberLog{member('a', 12), member('b', 12), newer('c', 11)}, 0, ""},
		"it follows in a newer term":       {[]memberLog{member('a', 12), member('b', 12), newer('c', 12)}, 12, "ab"},
		"another entry of an older term":   {older(12), 12, "ab"},
		"the state is older than the term": {all([]memberLog{member('a', 12), member('b', 12)}, func(l *memberLog) { l.term = 1 }), 0, ""},
	} {
		t.Run(name, func(t *testing.T) { found(t, c.logs, c.want, c.by) })
	}
}

// newer is a log with entries of a newer term after an index.
func newer(of rune, after uint64) memberLog {
	return with(member(of, after), func(l *memberLog) {
		l.entries, l.term = append(l.entries, stretch{3, after + 2}), 3
	})
}

// older are logs of which the third has entries of a leader that was replaced.
func older(last uint64) []memberLog {
	logs := []memberLog{member('a', 10), member('b', 10), member('c', last)}
	for i := range logs[:2] {
		logs[i].entries, logs[i].term = append(logs[i].entries, stretch{3, last}), 3
	}
	return logs
}

// TestDamage: a log that may have lost the HardState of a newer term does not count, one that is damaged before that
// does.
func TestDamage(t *testing.T) {
	two := func(spoil func(t *testing.T, dir string)) []memberLog {
		return []memberLog{member('a', 12), spoiled(member('b', 12), spoil)}
	}
	for name, c := range map[string]struct {
		logs []memberLog
		want uint64
		by   string
	}{
		"in the middle":                  {two(flip(7)), 12, "ab"},
		"the entry itself":               {two(flip(12)), 0, ""},
		"the last state":                 {two(flip(0)), 0, ""},
		"the file was cut short":         {two(cutFile), 0, ""},
		"an unfinished record":           {[]memberLog{member('a', 12), unfinished(member('b', 12))}, 12, "ab"},
		"both in the middle":             {all(two(nil), func(l *memberLog) { l.spoil = flip(7) }), 0, ""},
		"both in the middle, elsewhere":  {[]memberLog{spoiled(member('a', 12), flip(5)), spoiled(member('b', 12), flip(8))}, 12, "ab"},
		"above the commit, and on one":   {two(flip(11)), 12, "ab"},
		"above the commit, and on both":  {all(two(nil), func(l *memberLog) { l.spoil = flip(11) }), 0, ""},
		"the third holds what they lost": {append(all(two(nil), func(l *memberLog) { l.spoil = flip(7) }), member('c', 11)), 12, "ab"},
	} {
		t.Run(name, func(t *testing.T) { found(t, c.logs, c.want, c.by) })
	}
}

// TestConfiguration: only voters count, and it has to be known who is one.
func TestConfiguration(t *testing.T) {
	learner := clustertest.AddLearner(voter('d'), 1)
	fourth := clustertest.AddVoter(voter('d'), 1)
	remove := raftpb.ConfChange{ID: 1, Type: raftpb.ConfChangeRemoveNode, NodeID: voter('c')}
	forced := raftpb.ConfChange{Type: raftpb.ConfChangeRemoveNode, NodeID: voter('c')}
	for name, c := range map[string]struct {
		logs []memberLog
		want uint64
		by   string
	}{
		"a learner does not count":           {at(5, learner, member('a', 12), member('d', 12)), 0, ""},
		"with a learner":                     {at(5, learner, member('a', 12), member('b', 12), member('d', 12)), 12, "ab"},
		"two of four since a conf change":    {at(5, fourth, member('a', 12), member('b', 12)), 0, ""},
		"three of four since a conf change":  {at(5, fourth, member('a', 12), member('b', 12), member('d', 12)), 12, "abd"},
		"two of two after a removal":         {at(5, remove, member('a', 12), member('b', 12)), 12, "ab"},
		"a removed member":                   {at(5, remove, member('a', 12), member('c', 12)), 0, ""},
		"conf change above the commit":       {at(12, fourth, member('a', 13), member('b', 13)), 11, "ab"},
		"conf change right above the commit": {at(11, fourth, member('a', 13), member('b', 13)), 0, ""},
		"conf change on the third":           {append(at(11, fourth, member('c', 11)), member('a', 13), member('b', 13)), 0, ""},
		"conf change above the entry":        {append(at(13, fourth, member('a', 13)), member('b', 12)), 12, "ab"},
		"one lost the conf change":           {at(5, remove, spoiled(member('a', 12), flip(5)), member('b', 12)), 0, ""},
		"forced":                             {at(5, forced, member('a', 12), member('b', 12)), 0, ""},
		"purged, with a snapshot":            {all([]memberLog{member('a', 12), member('b', 12)}, func(l *memberLog) { l.from = 8 }), 12, "ab"},
		"purged, without voters":             {all([]memberLog{member('a', 12), member('b', 12)}, func(l *memberLog) { l.from, l.founded = 8, "" }), 0, ""},
		"one is purged":                      {[]memberLog{member('a', 12), with(member('b', 12), func(l *memberLog) { l.from = 8 })}, 12, "ab"},
		"shown as removed":                   {[]memberLog{member('a', 12), with(member('b', 12), removes('c'))}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) { found(t, c.logs, c.want, c.by) })
	}
}

// removes puts a member among the removed ones of the database.
func removes(letter rune) func(l *memberLog) {
	return func(l *memberLog) { l.edit = func(h *clustertest.Hand) { h.Removed(voter(letter)) } }
}

// TestIdentity: logs of other clusters, and several of one member, do not count.
func TestIdentity(t *testing.T) {
	restored := func(l memberLog) memberLog { return with(l, func(l *memberLog) { l.restored = true }) }
	apart := func(l memberLog) memberLog { return with(l, func(l *memberLog) { l.first = 1 }) }
	for name, c := range map[string]struct {
		logs []memberLog
		want uint64
		by   string
	}{
		"of another cluster":       {[]memberLog{member('a', 12), with(member('b', 12), func(l *memberLog) { l.as = 0xc2 })}, 0, ""},
		"the same member twice":    {[]memberLog{member('a', 12), member('a', 12)}, 0, ""},
		"one of them twice":        {[]memberLog{member('a', 12), member('a', 11), member('b', 12), member('c', 12)}, 12, "bc"},
		"all restored":             {[]memberLog{restored(member('a', 12)), restored(member('b', 12))}, 12, "ab"},
		"one restored":             {[]memberLog{restored(member('a', 12)), member('b', 12)}, 0, ""},
		"restored apart":           {[]memberLog{restored(member('a', 12)), apart(restored(member('b', 12)))}, 0, ""},
		"another cluster, same ID": {[]memberLog{member('a', 12), apart(member('b', 12))}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) { found(t, c.logs, c.want, c.by) })
	}
}

// found compares what is found in these logs, in any order of them.
func found(t *testing.T, logs []memberLog, want uint64, by string) {
	t.Helper()
	var specs []evidence.Spec
	for i := range logs {
		name := string(logs[i].of)
		if slices.ContainsFunc(specs, func(s evidence.Spec) bool { return s.Name == name }) {
			name += "2"
		}
		specs = append(specs, logs[i].write(t, name))
	}
	for range 2 {
		set, err := evidence.Open(t.Context(), specs, evidence.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = set.Close() }() // only read
		got, holders := uint64(0), []string{}
		if c := majority.Find(cluster, set.Members); c != nil {
			got = c.Index
			for _, m := range c.Holders {
				holders = append(holders, m.Label())
			}
		}
		if slices.Sort(holders); got != want || strings.Join(holders, "") != by {
			t.Errorf("found %d of %q, want %d of %q", got, holders, want, by)
		}
		slices.Reverse(specs)
	}
}

// TestIsIn: a log holds the entry, or a prefix of what comes before it, or other entries.
func TestIsIn(t *testing.T) {
	for name, c := range map[string]struct {
		log  memberLog
		want bool
	}{
		"a holder":             {member('c', 12), true},
		"it ends before":       {member('c', 11), true},
		"it has more":          {member('c', 14), true},
		"it has other entries": {older(12)[0], false},
		"another last entry":   {older(11)[0], false},
	} {
		t.Run(name, func(t *testing.T) {
			c.log.of, c.log.founded = 'c', "abc"
			a, b := member('a', 12), member('b', 12)
			var specs []evidence.Spec
			for _, l := range []memberLog{a, b, c.log} {
				specs = append(specs, l.write(t, string(l.of)))
			}
			set, err := evidence.Open(t.Context(), specs, evidence.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = set.Close() }() // only read
			commit := majority.Find(cluster, set.Members[:2])
			if commit == nil || commit.IsIn(set.Members[2]) != c.want {
				t.Errorf("%+v, want it to be in the log: %v", commit, c.want)
			}
		})
	}
}

// TestSays names one entry, or several.
func TestSays(t *testing.T) {
	c := &majority.Commit{Index: 12, Held: 12, Term: 2, Voters: 3}
	for _, n := range []string{"a", "b"} {
		c.Holders = append(c.Holders, &evidence.Member{Source: &evidence.Source{Name: n}})
	}
	const by = " committed, though no source shows the commit: the logs of a and b, 2 of 3 voters, hold "
	for got, want := range map[string]string{
		c.Says(12):          "entry 12 is" + by + "it, and show no newer term",
		c.Says(11):          "entries 11..12 are" + by + "entry 12, and show no newer term",
		c.UpTo(11).Says(11): "entry 11 is" + by + "entry 12, and show no newer term",
	} {
		if got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

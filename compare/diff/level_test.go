package diff_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

// stands is a member made by hand: how far it has applied, its compact and current revision, and what the replay knows
// of its revisions.
type stands struct {
	applied      uint64
	compact, rev int64
	levels       map[uint64]int64
	// unchecked is a member that the replay does not reach, ahead one whose database holds more than its index says.
	unchecked, ahead bool
	// without is a member without database, torn one of which bucket key cannot be read.
	without, torn bool
	// at is its revision at the higher index of the replay, 0 when not known.
	at int64
	// runs is the snapshot of a running member.
	runs bool
	// damaged has pages of bucket key that cannot be read.
	damaged bool
}

// aligned places the members; keyCommon is the index up to which the replay shows that nothing is outstanding.
func aligned(keyCommon uint64, list ...stands) *diff.Result {
	rp := &replay.Result{KeyCommon: keyCommon}
	var members []*evidence.Member
	for i, s := range list {
		m := &evidence.Member{Source: &evidence.Source{Name: fmt.Sprint("node", i+1)}, AppliedMin: s.applied,
			AppliedMax: s.applied}
		if s.runs {
			m.Source.Kind = evidence.KindEndpoint
		}
		if !s.without {
			m.DB = &evidence.DB{Handle: &dumpdb.DB{}, KV: &dumpdb.KVStats{CurrentRev: s.rev, CompactRev: s.compact},
				KVDamaged: s.damaged}
		}
		if s.torn {
			m.DB.KV = nil
		}
		mr := &replay.MemberResult{Member: m, Checked: !s.unchecked, Levels: s.levels, RevisionAt: s.at}
		if s.ahead {
			mr.Ahead = &replay.Stretch{}
		}
		members, rp.Members = append(members, m), append(rp.Members, mr)
	}
	if keyCommon == 0 {
		return diff.Align(members, nil)
	}
	return diff.Align(members, rp)
}

// known is a level of each pair index, revision.
func known(pairs ...int64) map[uint64]int64 {
	out := map[uint64]int64{}
	for i := 0; i < len(pairs); i += 2 {
		out[uint64(pairs[i])] = pairs[i+1]
	}
	return out
}

// TestAlign: members are compared at the index that most of them can be brought to, and one that cannot is set apart
// and hides nothing.
func TestAlign(t *testing.T) {
	const byRevision = "aligned by revision"
	at100 := stands{applied: 100, compact: -1, rev: 50, levels: known(100, 50)}
	for name, c := range map[string]struct {
		keyCommon uint64
		members   []stands
		common    uint64
		revs      []int64
		apart     []int
		compact   int64
		note      string
	}{
		"of two running members one is an entry behind": {members: []stands{
			{applied: 100, compact: 20, rev: 50, runs: true}, {applied: 100, compact: 20, rev: 50, runs: true},
			{applied: 99, compact: 20, rev: 49, runs: true}}, common: 99, revs: []int64{49, 49, 49}, compact: 20,
			note: byRevision},
		"an older backup beside two": {members: []stands{{applied: 100, compact: 20, rev: 50},
			{applied: 100, compact: 20, rev: 50}, {applied: 99, compact: 20, rev: 49}}, common: 100,
			revs: []int64{50, 50, 0}, apart: []int{2}, compact: 20},
		"all at one index": {keyCommon: 100, members: []stands{at100, at100, at100}, common: 100,
			revs: []int64{50, 50, 50}, compact: -1},
		"one lags, the others know its index": {keyCommon: 90, members: []stands{
			{applied: 100, compact: 20, rev: 50, levels: known(90, 40, 100, 50)},
			{applied: 100, compact: 30, rev: 51, levels: known(90, 41, 100, 51)},
			{applied: 90, compact: -1, rev: 40, levels: known(90, 40)}},
			common: 90, revs: []int64{40, 41, 40}, compact: 30},
		"one lags behind what the others compacted": {keyCommon: 90, members: []stands{
			{applied: 100, compact: 45, rev: 50, levels: known(90, 40, 100, 50)},
			{applied: 100, compact: 45, rev: 50, levels: known(90, 40, 100, 50)},
			{applied: 90, compact: -1, rev: 40, levels: known(90, 40)}},
			common: 100, revs: []int64{50, 50, 0}, apart: []int{2}, compact: 45},
		"one lags up to what the others compacted": {keyCommon: 90, members: []stands{
			{applied: 100, compact: 40, rev: 50, levels: known(90, 40, 100, 50)},
			{applied: 100, compact: 40, rev: 50, levels: known(90, 40, 100, 50)},
			{applied: 90, compact: -1, rev: 40, levels: known(90, 40)}},
			common: 90, revs: []int64{40, 40, 40}, compact: 40},
		"one lags, and no log tells its index": {keyCommon: 90,
			members: []stands{at100, at100, {applied: 90, compact: -1, rev: 40, levels: known(90, 40)}},
			common:  100, revs: []int64{50, 50, 0}, apart: []int{2}, compact: -1},
		"one has a lower index, and the revision of the others": {keyCommon: 90,
			members: []stands{at100, at100, {applied: 90, compact: -1, rev: 50, levels: known(90, 50)}},
			common:  100, revs: []int64{50, 50, 50}, compact: -1, note: byRevision},
		"one has a lower index, and the revision of one of the others": {keyCommon: 90,
			members: []stands{at100, {applied: 100, compact: -1, rev: 51, levels: known(100, 51)},
				{applied: 90, compact: -1, rev: 50, levels: known(90, 50)}},
			common: 100, revs: []int64{50, 51, 0}, apart: []int{2}, compact: -1},
		"one has a lower index, and a higher revision": {keyCommon: 90,
			members: []stands{at100, at100, {applied: 90, compact: -1, rev: 51, levels: known(90, 51)}},
			common:  100, revs: []int64{50, 50, 0}, apart: []int{2}, compact: -1},
		"the first lags": {keyCommon: 90, members: []stands{{applied: 90, compact: -1, rev: 40, levels: known(90, 40)},
			at100, at100},
			common: 100, revs: []int64{0, 50, 50}, apart: []int{0}, compact: -1},
		"its own log does not reach it": {keyCommon: 90, members: []stands{
			{applied: 100, compact: -1, rev: 50, levels: known(90, 40, 100, 50)},
			{applied: 100, compact: -1, rev: 50, levels: known(90, 40, 100, 50)},
			{applied: 90, compact: -1, rev: 40, unchecked: true}},
			common: 90, revs: []int64{40, 40, 40}, compact: -1},
		"pairs at two indexes, the higher one counts": {keyCommon: 80, members: []stands{
			{applied: 80, compact: -1, rev: 30, levels: known(80, 30)},
			{applied: 80, compact: -1, rev: 30, levels: known(80, 30)}, {applied: 100, compact: 40, rev: 50},
			{applied: 100, compact: 40, rev: 50}},
			common: 100, revs: []int64{0, 0, 50, 50}, apart: []int{0, 1}, compact: 40},
		"a database ahead of its index is wound back": {keyCommon: 100,
			members: []stands{at100, {applied: 100, compact: -1, rev: 60, levels: known(100, 50), ahead: true}},
			common:  100, revs: []int64{50, 50}, compact: -1},
		"a revision is not taken from the replay where the database tells it": {keyCommon: 100,
			members: []stands{at100, {applied: 100, compact: -1, rev: 60, levels: known(100, 50)}},
			common:  100, revs: []int64{50, 60}, compact: -1},
		"a revision is not taken from a replay that did not reach the member": {keyCommon: 90, members: []stands{
			{applied: 90, compact: -1, rev: 40}, {applied: 100, compact: -1, rev: 39, levels: known(90, 38),
				unchecked: true}},
			common: 90, revs: []int64{39, 39}, compact: -1, note: byRevision},
		"no log, one revision": {members: []stands{{applied: 100, compact: 20, rev: 50},
			{applied: 100, compact: 10, rev: 50}},
			common: 100, revs: []int64{50, 50}, compact: 20},
		"no log, two revisions": {members: []stands{{applied: 100, compact: -1, rev: 50},
			{applied: 90, compact: -1, rev: 40}},
			common: 90, revs: []int64{40, 40}, compact: -1, note: byRevision},
		"no log, the lower one is just not compacted": {members: []stands{{applied: 100, compact: 40, rev: 50},
			{applied: 90, compact: -1, rev: 40}},
			common: 90, revs: []int64{40, 40}, compact: 40, note: byRevision},
		"no log, two of three": {members: []stands{{applied: 100, compact: 45, rev: 50},
			{applied: 95, compact: 45, rev: 48}, {applied: 90, compact: -1, rev: 40}},
			common: 90, revs: []int64{48, 48, 0}, apart: []int{2}, compact: 45, note: byRevision},
		"no log, the lowest is the one that all hold": {members: []stands{{applied: 100, compact: 30, rev: 40},
			{applied: 95, compact: 30, rev: 48}, {applied: 90, compact: -1, rev: 50}},
			common: 90, revs: []int64{40, 40, 40}, compact: 30, note: byRevision},
		"no log, nothing in common": {members: []stands{{applied: 100, compact: 45, rev: 50},
			{applied: 90, compact: -1, rev: 40}},
			common: 100, revs: []int64{50, 0}, apart: []int{1}, compact: 45},
		"no log tells of the third, which is further": {keyCommon: 90, members: []stands{
			{applied: 90, compact: -1, rev: 40}, {applied: 90, compact: -1, rev: 41},
			{applied: 100, compact: 40, rev: 50}},
			common: 90, revs: []int64{40, 41, 40}, compact: 40, note: byRevision},
		"no log tells of the third, which has compacted it": {keyCommon: 90, members: []stands{
			{applied: 90, compact: -1, rev: 40}, {applied: 90, compact: -1, rev: 41},
			{applied: 100, compact: 41, rev: 50}},
			common: 90, revs: []int64{40, 41, 0}, apart: []int{2}, compact: -1},
		"no log tells of the first, which is further": {keyCommon: 90, members: []stands{
			{applied: 100, compact: 40, rev: 50}, {applied: 90, compact: -1, rev: 40},
			{applied: 90, compact: -1, rev: 41}},
			common: 90, revs: []int64{40, 40, 41}, compact: 40, note: byRevision},
		"unreadable pages of one of three": {keyCommon: 100, members: []stands{at100,
			{applied: 100, compact: -1, rev: 50, levels: known(100, 50), damaged: true}, at100},
			common: 100, revs: []int64{50, 0, 50}, apart: []int{1}, compact: -1},
		"unreadable pages of one of two": {keyCommon: 100, members: []stands{at100,
			{applied: 100, compact: -1, rev: 50, levels: known(100, 50), damaged: true}},
			common: 100, revs: []int64{50, 50}, compact: -1},
		"without database": {keyCommon: 100, members: []stands{at100, {without: true}, at100}, common: 100,
			revs: []int64{50, 0, 50}, compact: -1},
		"bucket key cannot be read": {keyCommon: 100, members: []stands{at100, {applied: 3, torn: true}, at100},
			common: 100, revs: []int64{50, 0, 50}, compact: -1},
		"nobody": {keyCommon: 100, members: []stands{{without: true}, {without: true}},
			revs: []int64{0, 0}, compact: -1},
		"one": {keyCommon: 100, members: []stands{at100}, common: 100, revs: []int64{50},
			compact: -1},
		"nothing is outstanding above": {keyCommon: 110, members: []stands{
			{applied: 100, compact: -1, rev: 50, levels: known(100, 50), at: 52},
			{applied: 100, compact: -1, rev: 50, levels: known(100, 50), at: 53}},
			common: 110, revs: []int64{52, 53}, compact: -1},
		"nothing is outstanding at the index": {keyCommon: 100, members: []stands{
			{applied: 100, compact: -1, rev: 50, levels: known(100, 50), at: 52},
			{applied: 100, compact: -1, rev: 50, levels: known(100, 50), at: 52}},
			common: 100, revs: []int64{50, 50}, compact: -1},
		"above, one is not known": {keyCommon: 110, members: []stands{
			{applied: 100, compact: -1, rev: 50, levels: known(100, 50), at: 52},
			{applied: 100, compact: -1, rev: 50, levels: known(100, 50)}},
			common: 100, revs: []int64{50, 50}, compact: -1},
		"above, one was not replayed": {keyCommon: 110, members: []stands{
			{applied: 100, compact: -1, rev: 50, levels: known(100, 50), at: 52},
			{applied: 100, compact: -1, rev: 50, unchecked: true, at: 52}},
			common: 100, revs: []int64{50, 50}, compact: -1},
		"above, one has compacted it": {keyCommon: 110, members: []stands{
			{applied: 100, compact: 50, rev: 50, levels: known(100, 50), at: 49},
			{applied: 100, compact: -1, rev: 50, levels: known(100, 50), at: 52}},
			common: 100, revs: []int64{50, 50}, compact: 50},
		"above, one has compacted up to it": {keyCommon: 110, members: []stands{
			{applied: 100, compact: 50, rev: 50, levels: known(100, 50), at: 50},
			{applied: 100, compact: -1, rev: 50, levels: known(100, 50), at: 52}},
			common: 110, revs: []int64{50, 52}, compact: 50},
		"above, one is apart": {keyCommon: 110, members: []stands{
			{applied: 100, compact: 45, rev: 50, levels: known(100, 50), at: 52},
			{applied: 100, compact: 45, rev: 50, levels: known(100, 50), at: 52},
			{applied: 90, compact: -1, rev: 40, levels: known(90, 40), at: 50}},
			common: 100, revs: []int64{50, 50, 0}, apart: []int{2}, compact: 45},
	} {
		t.Run(name, func(t *testing.T) {
			r := aligned(c.keyCommon, c.members...)
			var apart []int
			for i := range c.members {
				if r.KeysNotCompared[i] != "" {
					apart = append(apart, i)
				}
				out := c.members[i].without || c.members[i].torn
				if out != (r.NotCompared[i] != "") || r.TookPart("key", i) == (out || r.KeysNotCompared[i] != "") ||
					r.TookPart("lease", i) == out {
					t.Errorf("node%d: not compared %q, keys not compared %q", i+1, r.NotCompared[i],
						r.KeysNotCompared[i])
				}
			}
			if r.Common != c.common || r.Compact != c.compact || !slices.Equal(r.Revs, c.revs) ||
				!slices.Equal(apart, c.apart) {
				t.Errorf("at %d: revisions %v, compacted at %d, apart %v; want at %d: %v, %d, %v", r.Common, r.Revs,
					r.Compact, r.KeysNotCompared, c.common, c.revs, c.compact, c.apart)
			}
			if (c.note == "") != (r.Note == "") || !strings.Contains(r.Note, c.note) {
				t.Errorf("note %q, want %q", r.Note, c.note)
			}
		})
	}
}

// TestWhyKeysNotCompared: the reason says whether a member lags or has compacted its past.
func TestWhyKeysNotCompared(t *testing.T) {
	two := stands{applied: 100, compact: 45, rev: 50}
	r := aligned(90, two, two, stands{applied: 90, compact: -1, rev: 40})
	if want := "node3 has applied entries only up to 90"; !strings.Contains(r.KeysNotCompared[2], want) {
		t.Errorf("%q, want %q", r.KeysNotCompared[2], want)
	}
	r = aligned(90, stands{applied: 90, compact: -1, rev: 40}, stands{applied: 90, compact: -1, rev: 40}, two)
	want := "node3 has compacted its revision at the common index 90"
	if got := r.KeysNotCompared[2]; !strings.Contains(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestBackupOfAnotherLog: a backup whose members no data dir knows has the indexes of another log. It is not compared,
// and says so if too few are left.
func TestBackupOfAnotherLog(t *testing.T) {
	r := aligned(0, stands{applied: 100, compact: -1, rev: 50}, stands{applied: 100, compact: -1, rev: 50},
		stands{applied: 7, compact: -1, rev: 50})
	members := r.Members
	for i, m := range members[:2] {
		m.ClusterID, m.MemberID = 0xc1, dumplog.ID(0xa1+i)
	}
	members[2].Membership.Bucket = []dumplog.ID{0xb1}
	const why = "no data dir knows its members"
	r = diff.Align(members, nil)
	if !strings.Contains(r.NotCompared[2], why) || r.NotCompared[0]+r.NotCompared[1] != "" || r.Common != 100 {
		t.Errorf("left out %v, common index %d", r.NotCompared, r.Common)
	}
	r, err := diff.Run(t.Context(), members[1:], nil, diff.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"key", "lease", "meta"} {
		if b := r.Find(name); b.Equal != release.Unknown || !strings.HasPrefix(b.Reason, "node3: "+why) {
			t.Errorf("%s: %+v", name, b)
		}
	}
	members[2].Membership.Bucket[0] = 0xa1
	if r = diff.Align(members, nil); len(r.NotCompared) > 0 {
		t.Errorf("a backup of this cluster is left out: %v", r.NotCompared)
	}
}

package rebuild_test

import (
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
)

// TestVerdictOfMembers: one member that was compared to the end proves the result, any difference contradicts it.
func TestVerdictOfMembers(t *testing.T) {
	key := func(a release.Answer) rebuild.Bucket { return rebuild.Bucket{Bucket: "key", Equal: a} }
	lease := func(a release.Answer) rebuild.Bucket { return rebuild.Bucket{Bucket: "lease", Equal: a} }
	at := func(rev int64, hash release.Answer, b ...rebuild.Bucket) rebuild.Verification {
		return rebuild.Verification{Revision: rev, HashKV: hash, Buckets: b}
	}
	yes, no, unknown := release.Yes, release.No, release.Unknown
	for name, c := range map[string]struct {
		verified       []rebuild.Verification
		equal, differs bool
	}{
		"no member":         {},
		"equal":             {[]rebuild.Verification{at(9, yes, key(yes), lease(yes))}, true, false},
		"only the keys":     {[]rebuild.Verification{at(9, unknown, key(yes), lease(unknown))}, true, false},
		"not to the end":    {[]rebuild.Verification{at(8, yes, key(yes))}, false, false},
		"keys unknown":      {[]rebuild.Verification{at(9, yes, key(unknown), lease(yes))}, false, false},
		"no keys":           {[]rebuild.Verification{at(9, yes, lease(yes))}, false, false},
		"other hash":        {[]rebuild.Verification{at(9, no, key(yes))}, false, true},
		"other keys":        {[]rebuild.Verification{at(9, unknown, key(no))}, false, true},
		"other leases":      {[]rebuild.Verification{at(9, yes, key(yes), lease(no))}, false, true},
		"the second equal":  {[]rebuild.Verification{at(8, yes, key(yes)), at(9, yes, key(yes))}, true, false},
		"the second differ": {[]rebuild.Verification{at(9, yes, key(yes)), at(9, no, key(no))}, true, true},
	} {
		r := rebuild.Result{Verified: c.verified, To: rebuild.Point{Revision: 9}}
		if r.Equal() != c.equal || r.Differs() != c.differs {
			t.Errorf("%s: equal %v, differs %v", name, r.Equal(), r.Differs())
		}
	}
}

// TestParseTarget: a target reads back from its own text, and nothing else is one.
func TestParseTarget(t *testing.T) {
	noon := time.Date(2024, 1, 2, 12, 0, 0, 5, time.UTC)
	for text, want := range map[string]rebuild.Target{
		"last": {Last: true}, "index=1": {Index: 1}, "revision=1": {Revision: 1}, "before=a=b c": {Before: []byte("a=b c")},
		"before /k": {Before: []byte("/k")}, "time=2024-01-02T12:00:00.000000005Z": {Time: noon},
		"time 2024-01-02T13:00:00.000000005+01:00": {Time: noon},
	} {
		got, err := rebuild.ParseTarget(text)
		if err != nil || got.Last != want.Last || got.Index != want.Index || got.Revision != want.Revision ||
			string(got.Before) != string(want.Before) || !got.Time.Equal(want.Time) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
		again, err := rebuild.ParseTarget(got.String())
		if err != nil || again.String() != got.String() {
			t.Errorf("%s: %s, then %s, %v", text, got, again, err)
		}
	}
	for _, text := range []string{"", "lost", "index", "index=", "index=0", "index=-1", "index 5", "revision=0",
		"revision=-1", "revision=x", "time=noon", "before=", "other=5"} {
		if got, err := rebuild.ParseTarget(text); err == nil {
			t.Errorf("%q is a target: %+v", text, got)
		}
	}
}

// TestGapText names one index or a span.
func TestGapText(t *testing.T) {
	if a, b := (rebuild.Gap{From: 3, To: 3}).String(), (rebuild.Gap{From: 3, To: 5}).String(); a != "3" || b != "3..5" {
		t.Error(a, b)
	}
}

package render

import (
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
)

// TestContrast: two texts that are too long for a line keep what differs between them.
func TestContrast(t *testing.T) {
	long := "key \"/registry/pods/ns0/pod-041\" create 61 mod 1871 version 7 lease 0 value <len 332 digest "
	for _, c := range []struct {
		observed, expected string
		room               int
		want               [2]string
	}{
		{"29", "20", 60, [2]string{"29", "20"}},
		{long + "3bb4ecc86d7180c2>", long + "627bcdf8c880cf97>", 60,
			[2]string{"… digest 3bb4ecc86d7180c2>", "… digest 627bcdf8c880cf97>"}},
		{strings.Repeat("a", 64), strings.Repeat("b", 64), 50,
			[2]string{strings.Repeat("a", 29) + "…", strings.Repeat("b", 19) + "…"}},
		{strings.Repeat("a", 64), "b", 50, [2]string{strings.Repeat("a", 48) + "…", "b"}},
		{"a b c", "a b c", 1, [2]string{"…", "…"}},
		{`3/9 put key="/a" val=<len 20 digest aa598982>`, `3/9 put key="/a" val=<len 20 digest 3adf7042>`, 50,
			[2]string{"… digest aa598982>", "… digest 3adf7042>"}},
		{"torn-tail: stored CRC 280a6d93, computed 1", "a complete record that continues the CRC chain", 58,
			[2]string{"torn-tail", "a complete record that continues the CRC chain"}},
		{"torn-tail: stored CRC 280a6d93, computed 1", "torn-tail: stored CRC 1", 30,
			[2]string{"… CRC 280a6d93, …", "… CRC 1"}},
	} {
		o, e := contrast(c.observed, c.expected, c.room)
		if o != c.want[0] || e != c.want[1] {
			t.Errorf("%q and %q, want %q", o, e, c.want)
		}
	}
}

// TestVerdictSentence: the sentence says what is wrong first, then its class, and that no cause is known.
func TestVerdictSentence(t *testing.T) {
	for _, c := range []struct {
		v    compare.Verdict
		want string
	}{
		{compare.Verdict{Class: check.ClassLatentDivergence, Health: check.Unhealthy, Summary: "1 row differs. More"},
			"1 row differs (latent-divergence, cause unknown). More"},
		{compare.Verdict{Class: check.ClassLagging, Health: check.Healthy, Summary: "members lag"},
			"members lag (lagging)"},
		{compare.Verdict{Class: check.ClassHealthy, Health: check.Healthy, Summary: "no problem found"},
			"no problem found"},
		{compare.Verdict{Class: check.ClassBackupStale, Health: check.Unhealthy, Summary: "it is old"},
			"it is old (backup-stale)"},
	} {
		if s := verdictSentence(&compare.Report{Verdict: c.v}); s != c.want {
			t.Errorf("%q, want %q", s, c.want)
		}
	}
}

// TestNameBeginsASentence: the name of a source is written as it is, also where a sentence begins with it.
func TestNameBeginsASentence(t *testing.T) {
	r := &compare.Report{Sources: []compare.Source{{Name: "default"}, {Name: "my copy"}}}
	for s, want := range map[string]string{
		"default's log ends": "default's log ends", "default, node2: equal": "default, node2: equal",
		"my copy lacks": "my copy lacks", "defaults differ": "Defaults differ", "node2 lacks": "node2 lacks", "": "",
	} {
		if got := firstUpper(r, s); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestCounted: zero is a number only of a member whose whole content was compared and that can serve.
func TestCounted(t *testing.T) {
	for _, c := range []struct {
		r    compare.Rank
		n    int
		want string
	}{
		{compare.Rank{Usable: true, HoldsAll: true}, 0, "0"},
		{compare.Rank{Usable: true}, 0, "-"},
		{compare.Rank{HoldsAll: true}, 0, "-"},
		{compare.Rank{Usable: true, Lacks: compare.Count{CommittedEntries: 2}}, 0, "0"},
		{compare.Rank{Usable: true, Surplus: 1}, 0, "0"},
		{compare.Rank{Lacks: compare.Count{CommittedEntries: 2}}, 2, "2"},
	} {
		if s := counted(&c.r, c.n); s != c.want {
			t.Errorf("%+v: %q, want %q", c.r, s, c.want)
		}
	}
}

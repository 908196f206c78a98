package release_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/release"
)

// TestParseRange: texts are read and written alike, and mean the releases that they name.
func TestParseRange(t *testing.T) {
	for text, c := range map[string]struct{ in, out string }{
		"3.5.3":                          {"3.5.3", "3.5.2 3.5.4"},
		"3.5.3 - 3.5.4":                  {"3.5.3 3.5.4", "3.5.2 3.5.5"},
		"3.4.x":                          {"3.4.0 3.4.45", "3.3.27 3.5.0"},
		"3.2.0 - 3.4.x":                  {"3.2.0 3.4.45", "3.1.20 3.5.0"},
		"up to 3.4.19, 3.5.0 - 3.5.4":    {"3.0.0 3.4.19 3.5.0 3.5.4", "3.4.20 3.5.5"},
		"up to 3.1.x":                    {"3.0.0 3.1.20", "3.2.0"},
		"3.6.0 and later":                {"3.6.0 3.9.0", "3.5.35"},
		"all":                            {"3.0.0 3.9.0", ""},
		"3.5.20 - 3.5.23 (after 3.5.19)": {"3.5.20", "3.5.24"},
		"Linux 5.10.94 (or later)":       {"", "3.5.0"},
	} {
		r, err := release.ParseRange(text)
		if err != nil || r.String() != text {
			t.Errorf("%q: %q, %v", text, r, err)
			continue
		}
		for want, versions := range map[release.Answer]string{release.Yes: c.in, release.No: c.out} {
			for _, v := range strings.Fields(versions) {
				if got := r.In.Include(release.Of(v)); got != want {
					t.Errorf("%q: %s is included: %s, want %s", text, v, got, want)
				}
			}
		}
		var again release.Range
		b, err := json.Marshal(r)
		if err == nil {
			err = json.Unmarshal(b, &again)
		}
		if err != nil || again.String() != text || string(b) != fmt.Sprintf("%q", text) {
			t.Errorf("%q as JSON: %s, %q, %v", text, b, again, err)
		}
	}
	for _, text := range []string{"", "()", "all of them", "3.5.4 - 3.5.3", "up to 3.5.0 and later", "3.5.3,", "3..5",
		"3.5.3 (a) b", "3.5.3 (a", "3.5.3 (a) (b)", "3.5.3 ()"} {
		if r, err := release.ParseRange(text); err == nil {
			t.Errorf("%q is read as %+v", text, r)
		}
	}
}

// TestNot: a release is either in the spans or outside of them.
func TestNot(t *testing.T) {
	for text, want := range map[string]string{"up to 3.4.19, 3.5.0 - 3.5.4": "3.4.20 - 3.4.x, 3.5.5 and later",
		"3.5.3 and later": "up to 3.5.2", "3.5.0 - 3.5.x": "up to 3.4.x, 3.6.0 and later", "all": ""} {
		if got := (release.Range{In: parse(t, text).In.Not()}).String(); got != want {
			t.Errorf("not %q: %q, want %q", text, got, want)
		}
	}
}

// TestInclude: a note leaves open whether a release of its range is meant.
func TestInclude(t *testing.T) {
	ranges := []release.Range{parse(t, "up to 3.4.9"), parse(t, "3.5.0 - 3.5.3 (with auth)")}
	for v, want := range map[string]release.Answer{"3.4.9": release.Yes, "3.4.x": release.Unknown, "3.4.10": release.No,
		"3.5.1": release.Unknown, "3.5.4": release.No} {
		if got := release.Include(ranges, release.Of(v)); got != want {
			t.Errorf("%s: %s, want %s", v, got, want)
		}
	}
	if got := release.Include([]release.Range{parse(t, "bbolt 1.3.7")}, release.Of("3.5.1")); got != release.Unknown {
		t.Errorf("a note alone: %s", got)
	}
}

// TestUpgrades: only releases above a server's count, and none if it has the fix.
func TestUpgrades(t *testing.T) {
	fixes := []release.Range{parse(t, "3.3.21"), parse(t, "3.4.8, 3.5.0 (with auth)"), parse(t, "bbolt 1.3.7")}
	const all, from34, none = "3.3.21; 3.4.8, 3.5.0 (with auth); bbolt 1.3.7", "3.4.8, 3.5.0 (with auth); bbolt 1.3.7",
		"bbolt 1.3.7"
	for _, c := range []struct{ servers, want string }{{"?", all}, {"3.3.x", all}, {"3.4.x", from34}, {"3.4.7", from34},
		{"3.4.8", none}, {"3.4.30", none}, {"3.5.x", none}, {"3.6.2", none}, {"3.4.30 3.3.x", all},
		{"3.6.2 3.4.x", from34}} {
		var servers []release.Version
		for _, v := range strings.Fields(c.servers) {
			servers = append(servers, release.Of(v))
		}
		if got := release.Text(release.Upgrades(fixes, servers...)); got != c.want {
			t.Errorf("%s: %q, want %q", c.servers, got, c.want)
		}
	}
}

func parse(t *testing.T, text string) release.Range {
	t.Helper()
	r, err := release.ParseRange(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestText: a semicolon separates what a note belongs to.
func TestText(t *testing.T) {
	got := release.Text([]release.Range{parse(t, "3.3.21"), parse(t, "3.4.8"), parse(t, "3.5.0 (with auth)"),
		parse(t, "bbolt 1.3.7")})
	if want := "3.3.21, 3.4.8; 3.5.0 (with auth); bbolt 1.3.7"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

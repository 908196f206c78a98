package release

import (
	"bufio"
	"os"
	"regexp"
	"strings"
	"testing"
)

const factsFile = "testdata/upstream.txt"

// fact is what one rule looks like in the sources of etcd, and what was found there.
type fact struct {
	id         string
	files      []string
	has, lacks []*regexp.Regexp
	// record are the releases at which the answer changes, as "v3.4.27+".
	record []string
}

// unrecorded are rules that no line of the sources shows by itself, with what was read instead.
var unrecorded = map[string]string{
	"refused-keeps-index": "the deferred SetConsistentIndex of applyEntryNormal went by applyV3Performed in " +
		"3.5.3 and by the error in 3.5.4",
	"raised-alarm-keeps-index": "reported, and not found in the sources: Activate returns before it takes the lock " +
		"that moves the index",
	"index-below-snapshot": "reported, and not found in the sources",
	"checkpoints-by-cluster": "the bound is a cluster version, which shouldPersistCheckpoints compares with 3.6 in " +
		"every release that has it",
	"resumed-hash-differs": "issue 15919 and pull request 15985, in the changelogs of 3.4.27 and 3.5.10",
	"restore-counts-finished": "pull request 6633, in the changelogs of 3.0.13 and 3.1.0; 3.0 is not among the " +
		"releases that are looked at",
	"revoke-without-user": "3.2 is not among the releases that are looked at",
}

func readFacts(t *testing.T) (facts []*fact, releases []string) {
	t.Helper()
	f, err := os.Open(factsFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var at *fact
	in := bufio.NewScanner(f)
	for in.Scan() {
		word, rest, _ := strings.Cut(in.Text(), " ")
		switch word {
		case "releases":
			releases = strings.Fields(rest)
		case "rule":
			at = &fact{id: rest}
			facts = append(facts, at)
		case "files":
			at.files = strings.Fields(rest)
		case "has":
			at.has = append(at.has, regexp.MustCompile(rest))
		case "lacks":
			at.lacks = append(at.lacks, regexp.MustCompile(rest))
		case "record":
			at.record = strings.Fields(rest)
		}
	}
	if in.Err() != nil || len(facts) == 0 || len(releases) < 100 {
		t.Fatal("the facts cannot be read", in.Err(), len(facts), len(releases))
	}
	return facts, releases
}

// TestTableAgreesWithUpstream compares every rule, at every release, with what was found in the sources of etcd.
func TestTableAgreesWithUpstream(t *testing.T) {
	facts, releases := readFacts(t)
	seen := map[string]bool{}
	for _, f := range facts {
		seen[f.id] = true
		r := ByID(f.id)
		if r == nil {
			t.Errorf("no rule %s", f.id)
			continue
		}
		if len(f.record) == 0 {
			t.Errorf("%s has no record", f.id)
		}
		changes, follows := map[string]bool{}, false
		for _, c := range f.record {
			changes[c[:len(c)-1]] = strings.HasSuffix(c, "+")
		}
		for _, tag := range releases {
			if now, ok := changes[tag]; ok {
				follows = now
				delete(changes, tag)
			}
			want := No
			if follows {
				want = Yes
			}
			if got := Of(tag).Has(r); got != want && got != Unknown || got == Unknown &&
				!strings.HasSuffix(tag, "-alpha.0") {
				t.Errorf("%s @ %s: the table says %s, the sources say %s", f.id, tag, got, want)
			}
		}
		if len(changes) > 0 {
			t.Errorf("%s: the record names releases that are not listed: %v", f.id, changes)
		}
	}
	for _, r := range Rules() {
		if seen[r.ID] == (unrecorded[r.ID] != "") {
			t.Errorf("%s has to be either in %s or among the rules without a record", r.ID, factsFile)
		}
	}
}

package compare_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

func document(t *testing.T, r *compare.Report) []byte {
	t.Helper()
	b, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestReportIsAFunctionOfTheInput: the same bytes at another path give the same document, which names no path.
func TestReportIsAFunctionOfTheInput(t *testing.T) {
	dir := evidencetest.Incident(t, "a-auth-revision-replay")
	evidencetest.Unchanged(t, dir)
	first := document(t, diagnose(t, specsOf(t, dir)))
	copied := evidencetest.Copy(t, dir)
	if diff := cmp.Diff(string(first), string(document(t, diagnose(t, specsOf(t, copied))))); diff != "" {
		t.Error(diff)
	}
	if bytes.Contains(first, []byte(filepath.Dir(dir))) {
		t.Error("the document names a path of this machine")
	}
}

// TestOrderOfSourcesDoesNotMatter: verdict, cause and best member are the same for every order.
func TestOrderOfSourcesDoesNotMatter(t *testing.T) {
	dir := evidencetest.Incident(t, "a-auth-revision-replay")
	evidencetest.Unchanged(t, dir)
	specs := specsOf(t, dir)
	for _, order := range [][]int{{2, 1, 0}, {1, 2, 0}, {2, 0, 1}} {
		var in []evidence.Spec
		for _, i := range order {
			in = append(in, specs[i])
		}
		r := diagnose(t, in)
		if r.Verdict.Class != "data-divergence" || *r.Verdict.Cause != "auth-revision-replay" ||
			!slices.Equal(r.Best.Members, []string{"node3"}) {
			t.Errorf("order %v: %s %v best %v", order, r.Verdict.Class, *r.Verdict.Cause, r.Best.Members)
		}
	}
}

// TestEveryDroppedWriteIsNamed holds the dropped entries of the real incident against the keys that truth.json says are
// not on a member although they were written.
func TestEveryDroppedWriteIsNamed(t *testing.T) {
	dir := evidencetest.Incident(t, "a-auth-revision-replay")
	evidencetest.Unchanged(t, dir)
	r, err := compare.Diagnose(context.Background(), specsOf(t, dir), compare.Options{MaxRows: 1000})
	if err != nil {
		t.Fatal(err)
	}
	dropped := map[string]map[string]bool{"node1": {}, "node2": {}}
	for _, f := range findings(r, "", "A04") {
		for _, e := range f.Evidence {
			dropped[e.Member][string(e.Key)] = true
			if !strings.Contains(e.Observed, "by node") || !strings.Contains(e.Observed, "user=root") ||
				!strings.Contains(e.Observed, "header auth revision") {
				t.Errorf("%s: proposer, user or auth revision is missing", e.Observed)
			}
		}
	}
	truth := evidencetest.Truth(t, "a-auth-revision-replay")
	for key, via := range truth.Raw["marker_keys_written_via"].(map[string]any) {
		// Via node2 nothing reached node1; via node3 the first eight reached node3 alone; see marker_visibility.
		if via == "node2" && !dropped["node1"][key] {
			t.Errorf("%s was dropped by node1 and is not named", key)
		}
		if via == "node1" && (dropped["node1"][key] || dropped["node2"][key]) {
			t.Errorf("%s was dropped by nobody and is named", key)
		}
	}
	if n1, n2 := len(dropped["node1"]), len(dropped["node2"]); n1 != 43 || n2 != 21 {
		t.Errorf("%d and %d dropped writes, want 43 and 21 (revisions 68, 90 and 111)", n1, n2)
	}
}

// TestSingleMembersOfHealthySetsAreHealthy: each member is proven against its own log alone.
func TestSingleMembersOfHealthySetsAreHealthy(t *testing.T) {
	for _, name := range []string{"m-healthy-3.5", "m-healthy-3.6", "m-healthy-3.7", "k-lagging-node",
		"l-compaction-skew"} {
		dir := evidencetest.Incident(t, name)
		evidencetest.Unchanged(t, dir)
		for _, spec := range specsOf(t, dir) {
			r := diagnose(t, []evidence.Spec{spec})
			if r.Verdict.Health != check.Healthy || outcome(r, "K03") != check.Holds {
				t.Errorf("%s/%s: %s %s, K03 %s", name, spec.Name, r.Verdict.Class, r.Verdict.Summary, outcome(r, "K03"))
			}
		}
	}
}

// TestSingleMemberShowsItsOwnDamage: what one database and its own log prove needs no other member.
func TestSingleMemberShowsItsOwnDamage(t *testing.T) {
	for incident, want := range map[string]struct{ node, class, check string }{
		"n-silent-kv-divergence":  {"node2", "db-damage", "K03"},
		"a-auth-revision-replay":  {"node1", "data-divergence", "A04"},
		"e-torn-wal-tail":         {"node2", "wal-damage", "W02"},
		"f-bbolt-page-corruption": {"node1", "db-damage", "D02"},
	} {
		dir := evidencetest.Incident(t, incident)
		evidencetest.Unchanged(t, dir)
		r := diagnose(t, []evidence.Spec{{Name: want.node, Where: filepath.Join(dir, want.node)}})
		if r.Verdict.Health != check.Unhealthy || outcome(r, want.check) != check.Violated {
			t.Errorf("%s/%s alone: %s (%s), check %s %s", incident, want.node, r.Verdict.Class, r.Verdict.Summary,
				want.check, outcome(r, want.check))
		}
		if string(r.Verdict.Class) != want.class {
			t.Errorf("%s/%s alone: class %s, want %s", incident, want.node, r.Verdict.Class, want.class)
		}
	}
}

// TestDroppedByAllAtHand: the member that holds every write is not among the sources. The log tells what each of the
// others dropped, down to the number that the whole set shows, who may hold it, and that a database can be made from
// the log.
func TestDroppedByAllAtHand(t *testing.T) {
	dir := evidencetest.Incident(t, "a-auth-revision-replay")
	evidencetest.Unchanged(t, dir)
	whole := diagnose(t, specsOf(t, dir))
	lacks := map[string]int{}
	for _, row := range whole.Best.Ranking {
		lacks[row.Member] = row.Lacks.CommittedEntries
	}
	for _, names := range [][]string{{"node1", "node2"}, {"node1"}, {"node2"}} {
		var specs []evidence.Spec
		for _, n := range names {
			specs = append(specs, evidence.Spec{Name: n, Where: filepath.Join(dir, n)})
		}
		r := diagnose(t, specs)
		for _, row := range r.Best.Ranking {
			if row.Lacks.CommittedEntries != lacks[row.Member] || lacks[row.Member] == 0 {
				t.Errorf("%v: %s lacks %d, beside all members %d", names, row.Member, row.Lacks.CommittedEntries,
					lacks[row.Member])
			}
		}
		best := names[len(names)-1]
		if r.Verdict.Class != "data-divergence" || *r.Verdict.Cause != "auth-revision-replay" ||
			r.Best.Lost.CommittedEntries != lacks[best] {
			t.Errorf("%v: %s, cause %s, lost %d", names, r.Verdict.Class, *r.Verdict.Cause,
				r.Best.Lost.CommittedEntries)
		}
		n, proposers := r.Best.Lost.Nowhere(r.SourceNames())
		if n != lacks[best] || !slices.Contains(proposers, "7388dd8c8f94b724") {
			t.Errorf("%v: %d entries are held nowhere, proposed by %v", names, n, proposers)
		}
		if !slices.ContainsFunc(r.Next, func(s compare.Next) bool {
			return strings.HasPrefix(s.Command.String(), "etcd-medic rebuild --log "+names[0])
		}) {
			t.Errorf("%v: no way to make the database from the log: %+v", names, r.Next)
		}
	}
}

func TestTwoClustersMixed(t *testing.T) {
	a, b := evidencetest.Incident(t, "m-healthy-3.5"), evidencetest.Incident(t, "m-healthy-3.6")
	evidencetest.Unchanged(t, a, b)
	r := diagnose(t, []evidence.Spec{{Name: "a", Where: filepath.Join(a, "node1")},
		{Name: "b", Where: filepath.Join(b, "node1")}})
	if r.Verdict.Class != "foreign-cluster" || r.Verdict.Health == check.Healthy || r.Best != nil ||
		outcome(r, "K01") != check.NotChecked {
		t.Errorf("%s, best %v, K01 %s", r.Verdict.Class, r.Best, outcome(r, "K01"))
	}
	_, err := compare.Compare(context.Background(), []evidence.Spec{{Name: "a", Where: filepath.Join(a, "node1")},
		{Name: "b", Where: filepath.Join(b, "node1")}}, compare.Options{})
	if err == nil {
		t.Error("compare holds two clusters against each other")
	}
}

func TestSameSourceTwiceIsInconclusive(t *testing.T) {
	dir := filepath.Join(evidencetest.Incident(t, "m-healthy-3.5"), "node1")
	evidencetest.Unchanged(t, dir)
	r := diagnose(t, []evidence.Spec{{Where: dir}, {Where: dir}})
	if r.Verdict.Health != check.HealthUnknown || r.Verdict.Class != "inconclusive" ||
		outcome(r, "X01") != check.Violated {
		t.Errorf("%v %s, X01 %s", r.Verdict.Health, r.Verdict.Class, outcome(r, "X01"))
	}
	if r.Sources[0].Name == r.Sources[1].Name {
		t.Error("both sources carry one label")
	}
}

// TestEveryCheckHasDocAndID walks the list: IDs unique, of a known family, with title and doc.
func TestEveryCheckHasDocAndID(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range check.All() {
		if len(c.ID) != 3 || !strings.ContainsAny(string(c.ID[:1]), "WSDCKALMRBXG") || seen[string(c.ID)] {
			t.Errorf("ID %q is malformed or used twice", c.ID)
		}
		seen[string(c.ID)] = true
		if c.Title == "" || len(c.Doc) < 80 || c.Run == nil {
			t.Errorf("%s lacks title, doc or run", c.ID)
		}
	}
}

// TestEveryCheckIsSeenInEachOutcome: over the shipped incidents and the sources taken alone, every check holds
// somewhere and is told as not checked somewhere; those that no incident violates are listed here with the test that
// does.
func TestEveryCheckIsSeenInEachOutcome(t *testing.T) {
	seen := map[string]map[check.Outcome]bool{}
	note := func(r *compare.Report) {
		for _, c := range r.Checks {
			if seen[string(c.ID)] == nil {
				seen[string(c.ID)] = map[check.Outcome]bool{}
			}
			seen[string(c.ID)][c.Outcome] = true
			if c.Outcome == check.NotChecked && c.Reason == "" {
				t.Errorf("%s was not checked and does not say why", c.ID)
			}
		}
	}
	for _, name := range evidencetest.Incidents(t) {
		dir := evidencetest.Incident(t, name)
		specs := specsOf(t, dir)
		note(diagnose(t, specs))
		if w := filepath.Join(specs[0].Where, "member", "wal"); len(specs) > 1 {
			note(diagnose(t, []evidence.Spec{{Where: w}}))
		}
	}
	note(diagnose(t, dirSpecs(soundScript().Write(t, t.TempDir()))))
	for _, c := range check.All() {
		if c.ID == "B08" || c.ID == "B09" || c.OnDemand {
			continue // made by verify --against and --drill alone; their outcomes are in packages backup and drill
		}
		if !seen[string(c.ID)][check.Holds] {
			t.Errorf("%s holds nowhere", c.ID)
		}
		if !seen[string(c.ID)][check.NotChecked] && c.ID != "X02" {
			t.Errorf("%s is never told as not checked", c.ID)
		}
	}
}

// TestHistoryOfOneKey follows a key of the real incident that one member overwrote and another dropped.
func TestHistoryOfOneKey(t *testing.T) {
	dir := evidencetest.Incident(t, "a-auth-revision-replay")
	evidencetest.Unchanged(t, dir)
	h, err := compare.History(context.Background(), []byte("/app/orders/base/001"), specsOf(t, dir), compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Entries) != 2 {
		t.Fatalf("%d entries, want the seed and the overwrite", len(h.Entries))
	}
	over := h.Entries[1]
	if !strings.HasPrefix(over.Outcomes["node1"], "refused (old auth revision)") ||
		over.Outcomes["node2"] != "applied at revision 68" || over.Outcomes["node3"] != "applied at revision 80" {
		t.Errorf("outcomes %v", over.Outcomes)
	}
	if len(h.Records["node1"]) != 1 || len(h.Records["node3"]) != 2 || h.Records["node1"][0].Value.Bytes != nil {
		t.Errorf("records %+v", h.Records)
	}
}

func TestTimelineIsInOrder(t *testing.T) {
	dir := evidencetest.Incident(t, "a-auth-revision-replay")
	evidencetest.Unchanged(t, dir)
	r := diagnose(t, specsOf(t, dir))
	kinds := map[string]int{}
	for i, m := range r.Timeline {
		kinds[m.Kind]++
		if i > 0 && m.Index < r.Timeline[i-1].Index {
			t.Errorf("index %d behind %d", m.Index, r.Timeline[i-1].Index)
		}
	}
	want := map[string]int{"auth-revision-jump": 2, "divergence": 2, "conf-change": 3, "auth": 1, "start": 5,
		"snapshot": 9, "end": 3, "term": 1, "version": 1}
	for k, n := range want {
		if kinds[k] < 1 || k != "version" && k != "start" && kinds[k] != n {
			t.Errorf("%d moments of kind %s, want %d", kinds[k], k, n)
		}
	}
}

// TestTwoTroublesOneHeadline: one member's value was altered and another's database lost its end. Class, first break
// and cause of the headline speak of the same trouble, the other stands beside it.
func TestTwoTroublesOneHeadline(t *testing.T) {
	dir := evidencetest.Copy(t, evidencetest.Incident(t, "n-silent-kv-divergence"))
	if err := os.Truncate(filepath.Join(dir, "node1", "member", "snap", "db"), 20_000); err != nil {
		t.Fatal(err)
	}
	evidencetest.Unchanged(t, dir)
	r := diagnose(t, specsOf(t, dir))
	if r.Verdict.Class != "data-divergence" || *r.Verdict.Cause != "value-bytes-altered" ||
		!slices.Equal(r.Verdict.FirstBreak.Member, []string{"node2"}) {
		t.Errorf("%s, cause %s, first break on %v", r.Verdict.Class, *r.Verdict.Cause, r.Verdict.FirstBreak.Member)
	}
	if !slices.ContainsFunc(r.Causes, func(k compare.Cause) bool { return k.ID == "db-truncated" }) {
		t.Errorf("the other trouble has no cause: %+v", r.Causes)
	}
	if !slices.Equal(r.Best.Members, []string{"node3"}) {
		t.Errorf("best %v", r.Best.Members)
	}
}

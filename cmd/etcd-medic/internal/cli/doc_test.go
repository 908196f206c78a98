package cli

import (
	"encoding"
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/bundle"
	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/collect"
	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/backup"
	"github.com/etcd-medic/etcd-medic/compare/backup/chain"
	"github.com/etcd-medic/etcd-medic/compare/dossier"
	"github.com/etcd-medic/etcd-medic/compare/explain"
	"github.com/etcd-medic/etcd-medic/compare/preflight"
	"github.com/etcd-medic/etcd-medic/repair/extract"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
	"github.com/etcd-medic/etcd-medic/repair/restore"
	"github.com/etcd-medic/etcd-medic/repair/run"
	"github.com/etcd-medic/etcd-medic/repair/surgery"
	"github.com/etcd-medic/etcd-medic/shell"
)

// exitCodes are the constants by the names of docs/EXIT-CODES.md.
var exitCodes = map[string]int{
	"done": ExitDone, "error": ExitError, "usage": ExitUsage, "findings": ExitFindings,
	"inconclusive": ExitInconclusive,
	"refused":      ExitRefused, "unfinished": ExitUnfinished, "interrupted": ExitInterrupted,
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestExitCodesPage(t *testing.T) {
	got := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^\| (\d+) \| (\w+) \|`).FindAllStringSubmatch(read(t,
		"../../../../docs/EXIT-CODES.md"), -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		got[m[2]] = n
	}
	if d := cmp.Diff(exitCodes, got); d != "" {
		t.Errorf("docs/EXIT-CODES.md and exit.go differ (-code +page):\n%s", d)
	}
	topic := map[int]bool{}
	for _, m := range regexp.MustCompile(`(?m)^  (\d+) +\S`).FindAllStringSubmatch(topicExitCodes, -1) {
		n, _ := strconv.Atoi(m[1])
		topic[n] = true
	}
	for name, n := range exitCodes {
		if !topic[n] {
			t.Errorf("help exit-codes does not name %d (%s)", n, name)
		}
	}
}

// jsonNames collects the field names of a document, its nested types included.
func jsonNames(t reflect.Type, into map[string]bool, seen map[reflect.Type]bool) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || seen[t] {
		return
	}
	seen[t] = true
	if t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return
	}
	if t.Implements(reflect.TypeFor[json.Marshaler]()) {
		for f := range fields(t) {
			// These write a command twice: as text and as a list.
			if f.Type == reflect.TypeFor[shell.Command]() {
				name := strings.ToLower(f.Name)
				into[name], into[name+"Args"] = true, true
			}
		}
	}
	for f := range fields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() && !f.Anonymous {
			continue
		}
		if name == "" && !f.Anonymous {
			name = f.Name
		}
		if name != "" {
			into[name] = true
		}
		jsonNames(f.Type, into, seen)
	}
}

func fields(t reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if !yield(t.Field(i)) {
				return
			}
		}
	}
}

// inCode finds the names of a page that stand in backquotes and look like fields.
func inCode(page string) map[string]bool {
	names := map[string]bool{}
	for _, m := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(page, -1) {
		for _, n := range regexp.MustCompile(`[A-Za-z0-9]+`).FindAllString(m[1], -1) {
			names[n] = true
		}
	}
	return names
}

// TestJSONPage: every field of the documents is on the page, and the first column of its tables names fields only.
func TestJSONPage(t *testing.T) {
	page := read(t, "../../../../docs/JSON.md")
	code := map[string]bool{}
	seen := map[reflect.Type]bool{}
	jsonNames(reflect.TypeFor[compare.Report](), code, seen)
	jsonNames(reflect.TypeFor[dossier.Dossier](), code, seen)
	jsonNames(reflect.TypeFor[bundle.Info](), code, seen)
	jsonNames(reflect.TypeFor[bundle.LogCounts](), code, seen)
	jsonNames(reflect.TypeFor[bundle.ServerLine](), code, seen)
	jsonNames(reflect.TypeFor[compare.Comparison](), code, seen)
	jsonNames(reflect.TypeFor[compare.KeyHistory](), code, seen)
	jsonNames(reflect.TypeFor[plan.Plan](), code, seen)
	jsonNames(reflect.TypeFor[run.Outcome](), code, seen)
	jsonNames(reflect.TypeFor[run.Standing](), code, seen)
	jsonNames(reflect.TypeFor[run.WayBack](), code, seen)
	jsonNames(reflect.TypeFor[extract.Result](), code, seen)
	jsonNames(reflect.TypeFor[backup.Against](), code, seen)
	jsonNames(reflect.TypeFor[chain.Report](), code, seen)
	jsonNames(reflect.TypeFor[render.Backups](), code, seen)
	jsonNames(reflect.TypeFor[preflight.Result](), code, seen)
	jsonNames(reflect.TypeFor[explain.Answer](), code, seen)
	jsonNames(reflect.TypeFor[restore.Report](), code, seen)
	jsonNames(reflect.TypeFor[surgery.Report](), code, seen)
	jsonNames(reflect.TypeFor[backup.Drill](), code, seen)
	jsonNames(reflect.TypeFor[rebuild.Result](), code, seen)
	jsonNames(reflect.TypeFor[upDocument](), code, seen)
	jsonNames(reflect.TypeFor[collect.Manifest](), code, seen)
	jsonNames(reflect.TypeFor[onceResult](), code, seen)
	jsonNames(reflect.TypeFor[aboutProgram](), code, seen)
	documents, _, ok := strings.Cut(page, "## dumplog and dumpdb")
	if !ok {
		t.Fatal("docs/JSON.md has no part on dumplog and dumpdb")
	}
	classes := regexp.MustCompile("(?s)\\| class \\| healthy.*?\n\n").FindString(documents)
	if classes == "" {
		t.Fatal("docs/JSON.md has no table of classes")
	}
	for _, m := range regexp.MustCompile("(?m)^\\| (`[^|]+`) \\|").FindAllStringSubmatch(strings.Replace(documents,
		classes, "", 1), -1) {
		for n := range inCode(m[1]) {
			if !code[n] {
				t.Errorf("docs/JSON.md describes %s, which no document has", n)
			}
		}
	}
	described := inCode(page)
	for _, n := range undescribed {
		described[n] = true
	}
	for n := range code {
		if !described[n] {
			t.Errorf("docs/JSON.md does not describe %s", n)
		}
	}
}

// undescribed are fields of nested values whose meaning is that of the bbolt or raft structure they come from, and
// those of documents that have no command yet.
var undescribed = []string{
	"seq", "first", "dataEnd", "firstEntry", "lastEntry", "end", "offset", "what", // segments, left-overs
	"page", "txid", "root", "freelist", "highWater", "valid", "problem", "headerProblem", "used", // meta pages
	// members
	"learners", "votersOutgoing", "learnersNext", "autoLeave", "version", "userKeys", "peerURLs", "clientURLs",
	"isLearner",
	"hash", "compactRevision", "segment", "bytes",
}

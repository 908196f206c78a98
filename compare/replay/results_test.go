package replay

import (
	"cmp"
	"flag"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

var update = flag.Bool("update", false, "rewrite testdata/results")

// TestResults: what the replay of every shipped incident and shape says, in full for what is short and shortened for
// what is long, stays as it is in testdata/results.
func TestResults(t *testing.T) {
	for _, name := range slices.Concat(evidencetest.Incidents(t), evidencetest.Shapes(t)) {
		t.Run(name, func(t *testing.T) {
			dirs := dataDirs(t, filepath.Join(evidencetest.Incident(t, name), "*"))
			if len(dirs) == 0 {
				return // a backup file
			}
			evidencetest.Unchanged(t, dirs...)
			set := open(t, dirs...)
			if clusters(set) > 1 {
				return
			}
			var b strings.Builder
			print := printer{&b}
			print.value("", reflect.ValueOf(run(t, set, Options{Watch: []byte("/registry/")})).Elem(), 0)
			golden := filepath.Join("testdata", "results", name+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(b.String()), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := diff.Diff(string(want), b.String()); d != "" {
				t.Errorf("another result than in %s; see -update: %s", golden, d)
			}
		})
	}
}

// dataDirs returns the folders that the pattern names and that have a folder member.
func dataDirs(t *testing.T, pattern string) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(pattern, "member"))
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range dirs {
		dirs[i] = filepath.Dir(d)
	}
	return dirs
}

// printer writes values as indented lines, one per field that is not zero.
type printer struct{ w *strings.Builder }

// Lists longer than shown are shortened to their first elements and the last; a checksum covers all.
const shown = 3

func (p printer) value(name string, v reflect.Value, depth int) {
	indent := strings.Repeat(" ", depth)
	switch {
	case v.IsZero() || name == "Member" || name == "Req" || depth > 12:
	case v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface:
		p.value(name, v.Elem(), depth)
	case v.Kind() == reflect.Struct && v.NumField() > 0:
		fmt.Fprintf(p.w, "%s%s\n", indent, name)
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				p.value(f.Name, v.Field(i), depth+1)
			}
		}
	case (v.Kind() == reflect.Slice || v.Kind() == reflect.Array) && v.Type().Elem().Kind() != reflect.Uint8:
		p.list(name, depth, v.Len(), func(p printer, i int) { p.value(fmt.Sprint(i), v.Index(i), depth+1) })
	case v.Kind() == reflect.Map:
		p.dictionary(name, v, depth)
	case v.Kind() == reflect.Func:
	default:
		fmt.Fprintf(p.w, "%s%s: %.200q\n", indent, name, fmt.Sprint(v.Interface()))
	}
}

func (p printer) dictionary(name string, v reflect.Value, depth int) {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int {
		x, y := fmt.Sprint(a.Interface()), fmt.Sprint(b.Interface())
		return cmp.Or(len(x)-len(y), strings.Compare(x, y))
	})
	p.list(name, depth, len(keys), func(p printer, i int) {
		p.value(fmt.Sprint(keys[i].Interface()), v.MapIndex(keys[i]), depth+1)
	})
}

func (p printer) list(name string, depth, n int, element func(printer, int)) {
	var all, short strings.Builder
	for i := range n {
		before := all.Len()
		element(printer{&all}, i)
		if i < shown || i == n-1 {
			short.WriteString(all.String()[before:])
		}
	}
	fmt.Fprintf(p.w, "%s%s: %d", strings.Repeat(" ", depth), name, n)
	if n > shown+1 {
		fmt.Fprintf(p.w, ", %08x", crc32.ChecksumIEEE([]byte(all.String())))
	}
	fmt.Fprintf(p.w, "\n%s", short.String())
}

package lines

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFullNamesEveryFolder: what a build is said to lack is what `make build` adds.
func TestFullNamesEveryFolder(t *testing.T) {
	folders, err := filepath.Glob("../../line3*")
	if err != nil || len(folders) == 0 {
		t.Fatalf("no folders of servers (%v)", err)
	}
	var want []string
	for _, f := range folders {
		want = append(want, "3."+strings.TrimPrefix(filepath.Base(f), "line3"))
	}
	if !slices.Equal(Full, want) {
		t.Errorf("Full is %v, the folders say %v", Full, want)
	}
	for _, v := range Versions() {
		if !slices.ContainsFunc(Full, func(line string) bool { return strings.HasPrefix(v, line+".") }) {
			t.Errorf("server %s is built in and not in Full", v)
		}
	}
}

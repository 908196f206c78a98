//go:build upstream

package release

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

var (
	etcd   = flag.String("etcd", "", "a clone of github.com/etcd-io/etcd with its tags")
	record = flag.Bool("record", false, "write what is found to "+factsFile)
)

// TestUpstream looks for every recorded fact in a clone of etcd.
func TestUpstream(t *testing.T) {
	if *etcd == "" {
		t.Fatal("-etcd names no clone")
	}
	facts, releases := readFacts(t)
	blobs := map[string][]byte{}
	found := map[string]string{}
	for _, f := range facts {
		var out []string
		last := ""
		for _, tag := range releases {
			mark := "-"
			if f.follows(t, tag, blobs) {
				mark = "+"
			}
			if mark != last {
				out, last = append(out, tag+mark), mark
			}
		}
		found[f.id] = strings.Join(out, " ")
		if !*record && !slices.Equal(out, f.record) {
			t.Errorf("%s:\nrecorded %v\nfound    %v", f.id, f.record, out)
		}
	}
	if *record {
		rewrite(t, found)
	}
}

func (f *fact) follows(t *testing.T, tag string, blobs map[string][]byte) bool {
	t.Helper()
	var text []byte
	for _, path := range f.files {
		key := tag + ":" + path
		if _, ok := blobs[key]; !ok {
			b, err := exec.Command("git", "-C", *etcd, "show", key).Output()
			if err != nil {
				b = nil
			}
			blobs[key] = b
		}
		text = append(text, blobs[key]...)
	}
	for _, rx := range f.has {
		if !rx.Match(text) {
			return false
		}
	}
	for _, rx := range f.lacks {
		if rx.Match(text) {
			return false
		}
	}
	return true
}

func rewrite(t *testing.T, found map[string]string) {
	t.Helper()
	old, err := os.ReadFile(factsFile)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	id := ""
	for _, line := range strings.Split(strings.TrimRight(string(old), "\n"), "\n") {
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "rule":
			id = rest
		case "record":
			line = "record " + found[id]
		}
		fmt.Fprintln(&out, line)
	}
	if err := os.WriteFile(factsFile, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

package dumplog_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestDamage runs the files of testdata/damage: each builds a log with etcd's own writer, damages it by the words of
// lab.damage, and shows what this package reads and what etcd's own reader does. Rewrite them with -rewrite.
func TestDamage(t *testing.T) {
	datadriven.Walk(t, "testdata/damage", func(t *testing.T, path string) {
		b := &lab{t: t}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			b.t = t
			return b.run(d)
		})
	})
}

// lab is the log under test.
type lab struct {
	t   *testing.T
	dir string
	// others are logs built before, by name, to take segments from.
	others map[string]string
}

func (b *lab) run(d *datadriven.TestData) string {
	switch d.Cmd {
	case "wal":
		b.build(d)
		return ""
	case "damage":
		for _, line := range lines(d.Input) {
			b.damage(strings.Fields(line))
		}
		return ""
	case "dump":
		return b.dump()
	case "scan":
		return b.scan()
	case "etcd":
		read := etcdReads(b.t, b.dir)
		b.endsThere(read)
		return read
	}
	b.t.Fatalf("%s: no command %q", d.Pos, d.Cmd)
	return ""
}

func lines(s string) []string {
	return slices.DeleteFunc(strings.Split(s, "\n"), func(l string) bool { return l == "" })
}

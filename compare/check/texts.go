package check

import (
	"embed"
	"path/filepath"
	"runtime"

	"github.com/etcd-medic/etcd-medic/internal/prose"
)

// proseFiles holds prose/ID.md for each check: what must hold, why it matters, when it is normal, and for which
// versions.
//
//go:embed prose/*.md
var proseFiles embed.FS

var texts, errTexts = prose.Load(proseFiles, "prose")

// described gives a check its texts and the file of the caller, which defines it.
func described(c Check) Check {
	if _, file, _, ok := runtime.Caller(1); ok {
		c.File = filepath.Base(file)
	}
	t := texts[string(c.ID)]
	c.Title, c.Doc = t.Title, t.Doc
	return c
}

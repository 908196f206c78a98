package check

import (
	"embed"

	"github.com/etcd-medic/etcd-medic/internal/prose"
)

// proseFiles holds prose/ID.md for each check: what must hold, why it matters, when it is normal, and for which
// versions.
//
//go:embed prose/*.md
var proseFiles embed.FS

var texts, errTexts = prose.Load(proseFiles, "prose")

// described gives a check its texts.
func described(c Check) Check {
	t := texts[string(c.ID)]
	c.Title, c.Doc = t.Title, t.Doc
	return c
}

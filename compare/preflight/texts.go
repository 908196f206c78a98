package preflight

import (
	"embed"

	"github.com/etcd-medic/etcd-medic/internal/prose"
)

// proseFiles are the texts: prose/ID.md says what a start requires, for which versions, and where upstream checks it.
//
//go:embed prose/*.md
var proseFiles embed.FS

var texts, errTexts = prose.Load(proseFiles, "prose")

// described sets the texts of a rule.
func described(r Rule) Rule {
	t := texts[r.ID]
	r.Title, r.Doc = t.Title, t.Doc
	return r
}

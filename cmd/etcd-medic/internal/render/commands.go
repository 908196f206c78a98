package render

import (
	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/shell"
)

// Runnable returns a function that writes a command with the paths of the sources, so that a copied line works.
func Runnable(sources []compare.Source) func(shell.Command) string {
	p := &page{}
	p.setSources(&compare.Report{Sources: sources})
	return func(c shell.Command) string { return c.At(p.places).String() }
}

// Clean escapes control characters and characters that change the direction of text.
func Clean(s string) string { return clean(s) }

package render

import (
	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/shell"
)

// Runnable returns a function that writes a command with the places of the sources, so that a copied line works.
func Runnable(sources []compare.Source) func(shell.Command) string {
	p := &page{}
	p.place(&compare.Report{Sources: sources})
	return func(c shell.Command) string { return c.At(p.places).String() }
}

// Clean replaces control characters and marks that change the direction of text by escapes.
func Clean(s string) string { return clean(s) }

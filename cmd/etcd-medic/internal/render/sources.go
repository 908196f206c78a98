package render

import (
	"fmt"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// unused lists the inputs that could not be used, so that the rest is not mistaken for everything.
func (p *page) unused(sources []compare.Source) {
	for i := range sources {
		if why := sources[i].WhyUnused(); why != "" {
			p.text("!! ", why)
		}
	}
}

// unchanged writes the proof that the evidence is unchanged.
func (p *page) unchanged(r *compare.Report) {
	files, bytes := 0, int64(0)
	for _, s := range r.Sources {
		files, bytes = files+s.Files, bytes+s.Bytes
	}
	if !r.InputsUnchanged || files == 0 {
		return
	}
	p.line("")
	p.text(p.paint("INPUTS", text.Bold)+"  ",
		fmt.Sprintf("%s, %s, opened read-only, unchanged while they were read; sha256: -w json",
			plural.Of(files, "file", "files"), plural.Size(bytes)))
}

// Package htmlreport writes the report as one HTML file. It loads nothing, opens from disk, and its tables are readable
// without JavaScript.
//
// Content of the sources enters the page in only two ways: escaped by html/template, and as JSON that the scripts
// insert as text. A content security policy names the digests of the scripts and styles, so nothing else can run.
package htmlreport

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/dossier"
	"github.com/etcd-medic/etcd-medic/shell"
)

//go:embed assets
var assets embed.FS

// scripts are the parts of the page's script, in order.
var scripts = []string{"base.js", "scale.js", "timeline.js", "hover.js", "curves.js", "tree.js", "files.js", "main.js"}

// Write writes the page. It depends only on d.
func Write(w io.Writer, d *dossier.Dossier) error {
	v := newView(d)
	return writePage(w, "page.gohtml", v.PageTitle, func(licence string) any { v.Licence = licence; return v },
		script{"data", newData(d, v)}, script{"rows", d.Differences})
}

// script is data for the scripts, as JSON in an element with that ID.
type script struct {
	id   string
	data any
}

// writePage fills a template, and adds the styles, the scripts and their data.
func writePage(w io.Writer, name, title string, view func(licence string) any, forScripts ...script) error {
	files := map[string]string{}
	for _, name := range append([]string{"style.css", name, "uPlot.iife.min.js", "uPlot.min.css", "uPlot.LICENSE"},
		scripts...) {
		b, err := assets.ReadFile("assets/" + name)
		if err != nil {
			return err
		}
		files[name] = string(b)
	}
	t, err := template.New("page").Parse(files[name])
	if err != nil {
		return err
	}
	var body bytes.Buffer
	if err := t.Execute(&body, view(files["uPlot.LICENSE"])); err != nil {
		return err
	}
	style := "\n" + files["uPlot.min.css"] + "\n" + themed(files["style.css"])
	library := "\n" + files["uPlot.iife.min.js"] + "\n"
	var own strings.Builder
	own.WriteString("\n(() => {\n\"use strict\";\n")
	for _, name := range scripts {
		own.WriteString(files[name])
	}
	own.WriteString("})();\n")
	csp := fmt.Sprintf("default-src 'none'; script-src %s %s; style-src %s; img-src data:; base-uri 'none'; "+
		"form-action 'none'", digest(library), digest(own.String()), digest(style))
	p := &printer{w: w}
	p.print("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "+
		"http-equiv=\"Content-Security-Policy\" content=\"", template.HTMLEscapeString(csp), "\">\n")
	p.print("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"referrer\" "+
		"content=\"no-referrer\">\n<title>", template.HTMLEscapeString(title), "</title>\n")
	p.print("<style>", style, "</style>\n</head>\n<body>\n", body.String())
	for _, s := range forScripts {
		p.print("<script type=\"application/json\" id=\"", s.id, "\">")
		p.json(s.data)
		p.print("</script>\n")
	}
	p.print("<script>", library, "</script>\n<script>", own.String(), "</script>\n</body>\n</html>\n")
	return p.err
}

// printer keeps the first error of several writes.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) print(parts ...string) {
	for _, s := range parts {
		if p.err == nil {
			_, p.err = io.WriteString(p.w, s)
		}
	}
}

// json writes a value with <, > and & escaped, and without control characters, since the file may be shown on a
// terminal.
func (p *printer) json(v any) {
	if p.err != nil {
		return
	}
	data, err := json.Marshal(v)
	if p.err = err; err == nil {
		_, p.err = p.w.Write(append(shell.AppendSafe(nil, data, true), '\n'))
	}
}

// digest returns the source expression of a content security policy that allows exactly this text.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// themed adds the dark colors for readers with a dark system and a browser without scripts, and the light ones for
// paper.
func themed(css string) string {
	light, dark := block(css, ":root {"), block(css, `:root[data-theme="dark"] {`)
	return css + "@media screen and (prefers-color-scheme: dark) {\n:root:not([data-theme]) {" + dark +
		"}\n}\n@media print {\n:root[data-theme] {" + light + "}\n}\n"
}

// block returns the text between the braces of a rule.
func block(css, head string) string {
	_, rest, _ := strings.Cut(css, head)
	in, _, _ := strings.Cut(rest, "}")
	return in
}

// data is the input of the scripts. It is in the page as JSON with <, > and & escaped, as package json does.
type data struct {
	*dossier.Dossier
	// Report is omitted: the document already shows it.
	Report struct{} `json:"report"`
	// Differences are separate, so that a page with very many of them opens quickly.
	Differences struct{} `json:"differences"`
	Break       uint64   `json:"break"`
	// Sources are the arguments for the sources.
	Sources string   `json:"sources"`
	Args    []string `json:"args"`
	Members []string `json:"members"`
	// Segments are by member.
	Segments [][]segment `json:"segments"`
}

func newData(d *dossier.Dossier, v *view) *data {
	out := &data{Dossier: d, Break: v.BreakIndex, Sources: strings.Join(v.args, " "), Args: v.args, Members: v.Names,
		Segments: [][]segment{}}
	for i := range d.Report.Members {
		m := &d.Report.Members[i]
		list := []segment{}
		for _, x := range segmentsOf(m) {
			x.Name = text(x.Name)
			list = append(list, x)
		}
		out.Segments = append(out.Segments, list)
	}
	return out
}

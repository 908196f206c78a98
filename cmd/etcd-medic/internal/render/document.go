package render

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/etcd-medic/etcd-medic/compare"
)

// Diagnosis writes the report of diagnose.
func Diagnosis(w io.Writer, f Format, r *compare.Report, o Options) error {
	return document(w, f, r, o, func(p *page) { diagnosisPage{p}.write(r) })
}

// Inspection writes the report of inspect.
func Inspection(w io.Writer, f Format, r *compare.Report, o Options) error {
	return document(w, f, r, o, func(p *page) { inspectionPage{p}.write(r) })
}

// Comparison writes the document of compare.
func Comparison(w io.Writer, f Format, c *compare.Comparison, o Options) error {
	return document(w, f, c, o, func(p *page) { comparisonPage{p}.write(c) })
}

// document writes a whole document: the machine formats from its JSON, the table by draw.
func document(w io.Writer, f Format, doc any, o Options, draw func(*page)) error {
	if f == Table {
		p := newPage(w, o)
		draw(p)
		return p.flush()
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if f == JSON {
		enc.SetIndent("", "  ")
	}
	if err := enc.Encode(doc); err != nil {
		return err
	}
	if f == Lines {
		return flatten(w, b.Bytes())
	}
	_, err := w.Write(safeFrom(b.Bytes(), 0, true))
	return err
}

// flatten writes a JSON document as "path" : value lines, in the document's order.
func flatten(w io.Writer, doc []byte) error {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	out := bufio.NewWriter(w)
	if err := flattenValue(d, out, ""); err != nil {
		return err
	}
	return out.Flush()
}

func flattenValue(d *json.Decoder, out *bufio.Writer, path string) error {
	tok, err := d.Token()
	if err != nil {
		return err
	}
	switch t := tok.(type) {
	case json.Delim:
		return flattenNested(d, out, path, t)
	case string:
		_, err = fmt.Fprintf(out, "%q : %s\n", path, strconv.Quote(t))
	case nil:
		_, err = fmt.Fprintf(out, "%q : null\n", path)
	default:
		_, err = fmt.Fprintf(out, "%q : %v\n", path, t)
	}
	return err
}

func flattenNested(d *json.Decoder, out *bufio.Writer, path string, open json.Delim) error {
	n := 0
	for ; d.More(); n++ {
		sub := path + "[" + strconv.Itoa(n) + "]"
		if open == '{' {
			name, err := d.Token()
			if err != nil {
				return err
			}
			sub = fmt.Sprint(name)
			if path != "" {
				sub = path + "." + sub
			}
		}
		if err := flattenValue(d, out, sub); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil { // the closing bracket
		return err
	}
	if n == 0 {
		empty := "[]"
		if open == '{' {
			empty = "{}"
		}
		_, err := fmt.Fprintf(out, "%q : %s\n", path, empty)
		return err
	}
	return nil
}

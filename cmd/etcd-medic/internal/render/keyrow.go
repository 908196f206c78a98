package render

import (
	"bytes"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumpdb/kube"
)

// KeyRow is one record of bucket key.
type KeyRow struct {
	*dumpdb.Revision
	// KeysOnly omits the value.
	KeysOnly bool
	// Kube, if set, is the value as a Kubernetes object; with Object it is shown decoded instead of the value.
	Kube   *kube.Object
	Object bool
}

// Kind is "revision".
func (KeyRow) Kind() string { return "revision" }

// Line is the greppable form: revision, key, versions, lease, value, place. A decoded object follows as YAML, indented.
func (r KeyRow) Line(dst []byte, o Options) []byte {
	return r.appendObject(r.line(dst, o))
}

func (r KeyRow) line(dst []byte, o Options) []byte {
	dst = appendRev(dst, r.Rev)
	if r.Tombstone {
		dst = append(dst, " tombstone"...)
	}
	t := textFields{buf: dst, o: o}
	r.content(&t)
	return appendDBPlace(t.buf, r.Place)
}

func (r KeyRow) appendObject(dst []byte) []byte {
	if !r.decoded() {
		return dst
	}
	text, err := r.Kube.YAML()
	if err != nil {
		text = r.Kube.JSON
	}
	for line := range bytes.Lines(text) {
		dst = appendPrintable(append(dst, "\n    "...), bytes.TrimSuffix(line, []byte("\n")))
	}
	return dst
}

// appendPrintable escapes characters that a terminal interprets, such as the line breaks that YAML keeps.
func appendPrintable(dst, line []byte) []byte {
	for len(line) > 0 {
		r, n := utf8.DecodeRune(line)
		if unicode.IsPrint(r) {
			dst = append(dst, line[:n]...)
		} else {
			q := strconv.AppendQuoteRuneToASCII(nil, r)
			dst = append(dst, q[1:len(q)-1]...)
		}
		line = line[n:]
	}
	return dst
}

// Fields are those of mvccpb.KeyValue with revision and place.
func (r KeyRow) Fields(f Fields) {
	f.Obj("revision", func(f Fields) {
		f.Int("main", r.Main)
		f.Int("sub", r.Sub)
	})
	f.Bool("tombstone", r.Tombstone)
	r.content(f)
	writePlace(f, r.Place)
}

func (r KeyRow) content(f Fields) {
	f.Bytes("key", r.KV.Key)
	if !r.Tombstone {
		f.Int("create", r.KV.CreateRevision)
		f.Int("mod", r.KV.ModRevision)
		f.Int("version", r.KV.Version)
		if r.KV.Lease != 0 {
			f.ID("lease", uint64(r.KV.Lease))
		}
		r.value(f)
	}
	if r.Err != nil {
		f.Str("error", r.Err.Error())
		f.Bytes("rawKey", r.RawKey)
		f.Value("raw", r.Raw)
	}
}

func (r KeyRow) value(f Fields) {
	if r.Kube != nil {
		f.Obj("kube", r.kube)
	}
	switch {
	case r.KeysOnly:
	case r.decoded():
		f.JSON("object", r.Kube.JSON)
	case r.Kube != nil && (r.Kube.Kind == "Secret" || r.Kube.Kind == "SecretList" || r.Kube.Kind == ""):
		f.Raw("val", r.KV.Value) // a value that was not decoded was not redacted
	default:
		f.Value("val", r.KV.Value)
	}
}

func (r KeyRow) kube(f Fields) {
	f.Str("encoding", r.Kube.Encoding)
	word(f, "apiVersion", r.Kube.APIVersion)
	word(f, "kind", r.Kube.Kind)
	word(f, "namespace", r.Kube.Namespace)
	word(f, "name", r.Kube.Name)
	word(f, "provider", r.Kube.Provider)
	if r.Kube.Err != nil {
		f.Str("error", r.Kube.Err.Error())
	}
}

// decoded reports whether the object is shown instead of the value.
func (r KeyRow) decoded() bool {
	return r.Object && !r.KeysOnly && r.Kube != nil && r.Kube.JSON != nil
}

// HashRow is a hash of all keys.
type HashRow struct{ dumpdb.HashKV }

// Kind is "hashkv".
func (HashRow) Kind() string { return "hashkv" }

// Line shows hash and revisions.
func (h HashRow) Line(dst []byte, o Options) []byte {
	return textLine(append(dst, "hashkv"...), o, h.Fields)
}

// Fields are those of etcdserverpb.HashKVResponse.
func (h HashRow) Fields(f Fields) {
	f.Uint("hash", uint64(h.Hash))
	f.Int("revision", h.Rev)
	f.Int("compactRevision", h.CompactRev)
}

package extract

import (
	"encoding/base64"
	"strconv"
	"unicode/utf8"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// jsonLines writes one object per record, with everything in the record.
type jsonLines struct {
	*file
	x   *reader
	buf []byte
}

func (j *jsonLines) put(rec *Record) error {
	b := j.buf[:0]
	b = append(b, `{"key":`...)
	b = appendBytes(b, rec.Key)
	b = append(b, `,"revision":`...)
	b = appendRev(b, rec.Rev)
	if rec.Tombstone {
		b = append(b, `,"tombstone":true`...)
	} else {
		b = appendNum(b, "createRevision", rec.CreateRevision)
		b = appendNum(b, "modRevision", rec.ModRevision)
		b = appendNum(b, "version", rec.Version)
		if rec.Lease != 0 {
			b = append(b, `,"lease":"`...)
			b = append(strconv.AppendUint(b, uint64(rec.Lease), 16), '"')
			if ttl, ok := j.x.leases[rec.Lease]; ok {
				b = appendNum(b, "leaseTTL", ttl)
			}
		}
		b = append(b, `,"value":`...)
		b = appendBytes(b, rec.Value)
	}
	if rec.Gone {
		b = append(b, `,"deleted":true`...)
	}
	if rec.Deleted != (dumpdb.Rev{}) {
		b = append(b, `,"deletedRevision":`...)
		b = appendRev(b, rec.Deleted)
	}
	if rec.Origin != "" {
		b = append(b, `,"origin":"`...)
		b = append(append(b, rec.Origin...), '"')
	}
	b = append(b, '}', '\n')
	j.buf = b
	_, err := j.Write(b)
	return err
}

func appendNum(b []byte, name string, n int64) []byte {
	b = append(append(append(b, `,"`...), name...), `":`...)
	return strconv.AppendInt(b, n, 10)
}

func appendRev(b []byte, r dumpdb.Rev) []byte {
	b = strconv.AppendInt(append(b, `{"main":`...), r.Main, 10)
	b = strconv.AppendInt(append(b, `,"sub":`...), r.Sub, 10)
	return append(b, '}')
}

// appendBytes writes bytes as in the JSON contract: {"text"} if printable, else {"base64"}.
func appendBytes(b, v []byte) []byte {
	if !check.Bytes(v).Printable() {
		b = append(b, `{"base64":"`...)
		b = base64.StdEncoding.AppendEncode(b, v)
		return append(b, `"}`...)
	}
	b = append(b, `{"text":"`...)
	for i := 0; i < len(v); {
		r, n := utf8.DecodeRune(v[i:])
		if r == '"' || r == '\\' {
			b = append(b, '\\')
		}
		b = append(b, v[i:i+n]...)
		i += n
	}
	return append(b, `"}`...)
}

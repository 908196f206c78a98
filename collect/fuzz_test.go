package collect

import "testing"

// FuzzTap streams any bytes as a database, in pieces of any size: never a panic.
func FuzzTap(f *testing.F) {
	f.Add(make([]byte, 5*4096), 4096)
	f.Add([]byte("x"), 1)
	f.Fuzz(func(t *testing.T, b []byte, piece int) {
		if piece < 1 {
			piece = 1
		}
		tap := &dbTap{}
		for len(b) > 0 {
			n := min(piece, len(b))
			if _, err := tap.Write(b[:n]); err != nil {
				t.Fatal(err)
			}
			b = b[n:]
		}
		_, _, _ = tap.Result() // what is no database is an error
	})
}

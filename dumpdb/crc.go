package dumpdb

import "hash/crc32"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// crcSum is the CRC-32C of some bytes. It can be joined with the sum of the bytes after them.
type crcSum struct {
	sum uint32
	n   uint64
}

func (c *crcSum) write(b []byte) {
	c.sum = crc32.Update(c.sum, castagnoli, b)
	c.n += uint64(len(b))
}

// join appends the bytes of o. A CRC is linear, so join multiplies the first sum by x^(8n) modulo the polynomial.
func (c *crcSum) join(o crcSum) {
	c.sum = polyMul(polyPow(o.n), c.sum) ^ o.sum
	c.n += o.n
}

// polyMul multiplies modulo the Castagnoli polynomial in its reflected form, where bit 31 represents x^0.
func polyMul(a, b uint32) uint32 {
	var p uint32
	for m := uint32(1) << 31; m != 0; m >>= 1 {
		if a&m != 0 {
			p ^= b
		}
		b = b>>1 ^ -(b&1)&crc32.Castagnoli
	}
	return p
}

// polyPow returns x^(8n).
func polyPow(n uint64) uint32 {
	p, x := uint32(1)<<31, uint32(1)<<23 // 1 and x^8
	for ; n != 0; n >>= 1 {
		if n&1 != 0 {
			p = polyMul(x, p)
		}
		x = polyMul(x, x)
	}
	return p
}

package isolation

import (
	"cmp"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// dns answers every host name with a different address from the ranges reserved for documentation (RFC 5737), which are
// unreachable. Equal names get equal addresses. etcd compares peer URLs by address when a member joins, which then
// gives the right result.
type dns struct {
	packets net.PacketConn
	streams net.Listener
	mu      sync.Mutex
	names   map[string]*Name
}

// documentation are the /24 networks of the answers.
var documentation = [][3]byte{{192, 0, 2}, {198, 51, 100}, {203, 0, 113}}

// answerSeconds is how long an answer may be cached.
const answerSeconds = 60

// newDNS listens on addr with UDP and TCP; port 0 chooses one that is free for both.
func newDNS(addr string) (*dns, error) {
	var err error
	for range 20 { // the port that is free for UDP may be in use for TCP
		var p net.PacketConn
		if p, err = net.ListenPacket("udp", addr); err != nil {
			return nil, err
		}
		var l net.Listener
		if l, err = net.Listen("tcp", p.LocalAddr().String()); err == nil {
			d := &dns{packets: p, streams: l, names: map[string]*Name{}}
			d.serve()
			return d, nil
		}
		_ = p.Close()
	}
	return nil, err
}

func (d *dns) addr() string { return d.packets.LocalAddr().String() }

func (d *dns) close() {
	_ = d.packets.Close()
	_ = d.streams.Close()
}

func (d *dns) serve() {
	go func() {
		buf := make([]byte, 4096)
		for {
			n, from, err := d.packets.ReadFrom(buf)
			if err != nil {
				return
			}
			if reply := d.reply(buf[:n]); reply != nil {
				_, _ = d.packets.WriteTo(reply, from)
			}
		}
	}()
	go func() {
		for {
			c, err := d.streams.Accept()
			if err != nil {
				return
			}
			go d.serveStream(c)
		}
	}()
}

// serveStream answers the queries of one TCP connection, each preceded by its length in two bytes.
func (d *dns) serveStream(c net.Conn) {
	defer func() { _ = c.Close() }()
	for {
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		var head [2]byte
		if _, err := io.ReadFull(c, head[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(head[:]))
		if _, err := io.ReadFull(c, query); err != nil {
			return
		}
		reply := d.reply(query)
		if reply == nil {
			return
		}
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
			return
		}
	}
}

// reply answers the first question of a query, nil if there is none.
func (d *dns) reply(query []byte) []byte {
	var p dnsmessage.Parser
	h, err := p.Start(query)
	if err != nil || h.Response {
		return nil
	}
	q, err := p.Question()
	if err != nil {
		return nil
	}
	b := dnsmessage.NewBuilder(nil, dnsmessage.Header{ID: h.ID, Response: true, Authoritative: true,
		RecursionDesired: h.RecursionDesired, RecursionAvailable: true})
	if b.StartQuestions() != nil || b.Question(q) != nil || b.StartAnswers() != nil {
		return nil
	}
	if a, ok := d.answer(q); ok {
		rh := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: answerSeconds}
		if b.AResource(rh, dnsmessage.AResource{A: a}) != nil {
			return nil
		}
	}
	out, err := b.Finish()
	if err != nil {
		return nil
	}
	return out
}

// answer returns the address of a name. It answers only IPv4: with several addresses a Go program would connect to each
// candidate to compare routes.
func (d *dns) answer(q dnsmessage.Question) (a [4]byte, ok bool) {
	if q.Class != dnsmessage.ClassINET || (q.Type != dnsmessage.TypeA && q.Type != dnsmessage.TypeAAAA) {
		return a, false
	}
	name := strings.TrimSuffix(strings.ToLower(q.Name.String()), ".")
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.names[name]
	if n == nil {
		i := len(d.names)
		block := documentation[i/254%len(documentation)]
		n = &Name{Name: name, Answer: net.IPv4(block[0], block[1], block[2], byte(i%254+1)).String()}
		d.names[name] = n
	}
	n.Queries++
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		n.Answer = "127.0.0.1" // for systems whose hosts file does not say so
	}
	if q.Type != dnsmessage.TypeA {
		return a, false
	}
	copy(a[:], net.ParseIP(n.Answer).To4())
	return a, true
}

func (d *dns) asked() []Name {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]Name, 0, len(d.names))
	for _, n := range d.names {
		out = append(out, *n)
	}
	slices.SortFunc(out, func(a, b Name) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

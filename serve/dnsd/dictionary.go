package dnsd

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/s2"
)

// dictionaries make answers short in the cache. Those of one zone are much alike: with
// a few of them as a dictionary the others take an eighth of their size, and it takes
// less time to make them long again than to send them.
//
// Dictionaries are learned of the first answers there are, and not changed after that.
type dictionaries struct {
	mu      sync.Mutex
	lessons map[uint32]*lesson            // by topic
	list    atomic.Pointer[[]*dictionary] // by number; 0 is not a dictionary
	rooms   sync.Pool                     // of *[]byte, in which bodies are shortened
}

// lesson is what is learned of a topic: answers until there are enough, then the
// number of the dictionary.
type lesson struct {
	text   []byte
	n      int
	number uint8
}

const (
	maxDictionaries = 64
	enoughAnswers   = 8
	enoughBytes     = 8 << 10

	// Answers outside these bounds are kept as they are.
	minShortened = 64
	maxShortened = 4 << 10
)

func newDictionaries() *dictionaries {
	d := &dictionaries{lessons: make(map[uint32]*lesson)}
	d.list.Store(&[]*dictionary{nil})
	return d
}

// shorten returns a body as it is kept, and the number of the dictionary that it needs
// to be read again; 0 if it is kept as it is. The result may be in room.
func (d *dictionaries) shorten(topic uint32, body, room []byte) ([]byte, uint8) {
	if len(body) < minShortened || len(body) > maxShortened {
		return body, 0
	}
	number := d.learn(topic, body)
	if number == 0 {
		return body, 0
	}
	short := (*d.list.Load())[number].shorten(room[:0], body)
	if len(short) >= len(body) {
		return body, 0
	}
	return short, number
}

// takeRoom returns memory for shorten, which giveRoom takes back.
func (d *dictionaries) takeRoom() *[]byte {
	if room, ok := d.rooms.Get().(*[]byte); ok {
		return room
	}
	room := make([]byte, s2.MaxEncodedLen(maxShortened))
	return &room
}

func (d *dictionaries) giveRoom(room *[]byte) { d.rooms.Put(room) }

// learn returns the number of a topic's dictionary, or 0 if there is none yet. The
// body is part of it then.
func (d *dictionaries) learn(topic uint32, body []byte) uint8 {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.lessons[topic]
	if l == nil {
		if len(d.lessons) >= maxDictionaries {
			return 0
		}
		l = new(lesson)
		d.lessons[topic] = l
	}
	if l.number != 0 {
		return l.number
	}
	l.text = append(l.text, body...)
	if l.n++; l.n < enoughAnswers && len(l.text) < enoughBytes {
		return 0
	}
	dict := newDictionary(l.text)
	if dict == nil {
		return 0
	}
	old := *d.list.Load()
	list := append(old[:len(old):len(old)], dict)
	d.list.Store(&list)
	l.number, l.text = uint8(len(old)), nil
	return 0 // from the next on
}

// lengthen appends a body of a given length to dst.
func (d *dictionaries) lengthen(dst, short []byte, number uint8, length int) (_ []byte, ok bool) {
	list := *d.list.Load()
	if int(number) >= len(list) || list[number] == nil {
		return dst, false
	}
	begin := len(dst)
	dst = slices.Grow(dst, length)
	body, err := list[number].Decode(dst[begin:begin+length], short)
	if err != nil || len(body) != length {
		return dst[:begin], false
	}
	return dst[:begin+length], true
}

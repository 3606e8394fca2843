package stele

// SecondaryState says how a secondary's copy of a zone is, compared with the zone.
type SecondaryState string

// The states of secondaries. One that answers is in the first state until its serial is
// compared; see [SecondaryAnswer.Against].
const (
	SecondaryAnswers SecondaryState = "answers"
	SecondarySame    SecondaryState = "same"    // it has the serial of the zone
	SecondaryBehind  SecondaryState = "behind"  // it takes the zone when it asks next
	SecondaryAhead   SecondaryState = "ahead"   // it keeps what it has, and takes nothing from this zone
	SecondaryFar     SecondaryState = "far"     // its serial is too far away to be compared
	SecondaryRefuses SecondaryState = "refuses" // it answers that it refuses the question
	SecondaryLame    SecondaryState = "lame"    // it answers, and does not have the zone
	SecondarySilent  SecondaryState = "silent"  // it does not answer
	SecondaryUnasked SecondaryState = "unasked" // it was not asked
)

// SecondaryAnswer is what a secondary of a zone said when it was asked for the serial of
// its copy.
type SecondaryAnswer struct {
	Zone   string
	At     string // its address with a port; the network or the key of one without an address
	State  SecondaryState
	Serial uint32 // if it has one; see HasSerial
	Why    string // there is no serial
}

// HasSerial reports whether the secondary said which serial it has.
func (a SecondaryAnswer) HasSerial() bool {
	switch a.State {
	case SecondaryAnswers, SecondarySame, SecondaryBehind, SecondaryAhead, SecondaryFar:
		return true
	}
	return false
}

// Against returns the answer compared with the serial that the zone has.
func (a SecondaryAnswer) Against(serial uint32) SecondaryAnswer {
	switch {
	case !a.HasSerial():
	case a.Serial == serial:
		a.State = SecondarySame
	case !SerialNear(a.Serial, serial):
		a.State = SecondaryFar
	case SerialAfter(a.Serial, serial):
		a.State = SecondaryAhead
	default:
		a.State = SecondaryBehind
	}
	return a
}

// serialWindow is how far apart two serials are at most that are near to each other. Two
// serials that are both near to a third are less than 2^31 apart, so that one of them is
// newer than the other (RFC 1982, section 3.2).
const serialWindow = 1 << 30

// SerialNear reports whether two serials are less than 2^30 apart. No zone changes that
// often between two looks at it: a serial which is not near to that of the zone is
// a mistake, or a lie.
func SerialNear(a, b uint32) bool {
	distance := int64(int32(a - b))
	return -serialWindow < distance && distance < serialWindow
}

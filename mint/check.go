package mint

// Betanumeric is the alphabet of NOID names and of NAANs, in the order of its
// characters' values: digits, and consonants without the letter l, so that no
// name spells a word and none holds two characters that look alike.
const Betanumeric = "0123456789bcdfghjkmnpqrstvwxz"

// radix is prime, which is what makes the check character catch every single
// wrong character (at the first 28 positions) and every swap of neighbours before
// it.
const radix = len(Betanumeric)

// maxRepairs bounds what Repairs returns. A name of common length has less than
// half as many.
const maxRepairs = 32

// maxRepaired is the longest text that Repairs looks at: people do not type longer
// names, and an attacker must not cause much work.
const maxRepaired = 256

// values maps a character to its place in Betanumeric, others to -1.
var values = func() (v [256]int8) {
	for i := range v {
		v[i] = -1
	}
	for i := range radix {
		v[Betanumeric[i]] = int8(i)
	}
	return v
}()

// IsBetanumeric reports whether c is a character of [Betanumeric].
func IsBetanumeric(c byte) bool { return values[c] >= 0 }

// isBetanumeric reports whether all of s is.
func isBetanumeric(s string) bool {
	for i := range len(s) {
		if !IsBetanumeric(s[i]) {
			return false
		}
	}
	return true
}

// CheckChar returns the NOID check character of s: the sum of each character's
// position, from 1, times its value, modulo 29. Characters that are not
// betanumeric have the value 0. By the ARK draft (section 2.4.1) s is the NAAN,
// a slash and the name; some authorities compute it over the name alone.
func CheckChar(s string) byte {
	return Betanumeric[weigh(0, 0, s)%uint(radix)]
}

// Checked reports whether the last character of s is the check character of
// those before it. Of texts without a check character it holds for 1 in 29.
func Checked(s string) bool {
	n := len(s) - 1
	return n > 0 && s[n] == CheckChar(s[:n])
}

// weigh adds to sum the weighted values of s, whose first character has n others
// before it.
func weigh[T string | []byte](sum uint, n int, s T) uint {
	for i := range len(s) {
		sum += uint(n+i+1) * value(s[i])
	}
	return sum
}

// Repairs returns what the writer of s may have meant, where s should be Checked
// and is not: every text that is, and that differs from s in one swap of
// neighbours or in one character, replaced by a betanumeric one. What stands
// before byte offset from is taken to be right. The likelier come first: swaps,
// then replacements of what can't be in a NOID name, then of a digit by a digit
// or a letter by a letter, then the rest. Repairs does not change characters that weigh
// nothing (every 29th): any would be right. It returns at most 32, and none for a text that
// is Checked and betanumeric, or longer than 256 bytes. (An "o" in place of a 0 weighs the
// same: the check character alone does not find it.)
func Repairs(s string, from int) (found []string) {
	last := len(s) - 1
	from = max(from, 0)
	if last < 1 || len(s) > maxRepaired || Checked(s) && isBetanumeric(s[min(from, len(s)):]) {
		return nil
	}
	sum := weigh(0, 0, s[:last])
	for i := from; i < last && len(found) < maxRepairs; i++ {
		if swapHelps(s, i, sum) {
			found = append(found, s[:i]+s[i+1:i+2]+s[i:i+1]+s[i+2:])
		}
	}
	for rank := range ranks {
		for i := from; i <= last && len(found) < maxRepairs; i++ {
			if c, ok := replacement(s, i, sum); ok && c != s[i] && slipRank(s[i], c) == rank {
				found = append(found, s[:i]+string(rune(c))+s[i+1:])
			}
		}
	}
	return found
}

// ranks is how many ranks slipRank has.
const ranks = 3

// slipRank orders typing errors of wrong in place of right, the likeliest being 0.
func slipRank(wrong, right byte) int {
	isDigit := func(c byte) bool { return '0' <= c && c <= '9' }
	switch {
	case !IsBetanumeric(wrong):
		return 0
	case isDigit(wrong) == isDigit(right):
		return 1
	}
	return 2
}

// swapHelps reports whether s, which is not Checked, is so once the characters at
// i and i+1 are swapped. The sum is that of s without its last character. It only
// grows here, by multiples of the radix where something is taken from it.
func swapHelps(s string, i int, sum uint) bool {
	a, b := s[i], s[i+1]
	if a == b || a >= 0x80 || b >= 0x80 { // no cut inside a character
		return false
	}
	last := len(s) - 1
	change := value(a) + uint(radix) - value(b)
	if i+1 < last {
		return agree(sum+change, s[last]) // a moves up by one, b down
	}
	return agree(sum+uint(last)*(uint(2*radix)-change), a) // b takes a's place
}

// replacement returns the one betanumeric character that, put at i, makes s
// Checked, which it is not. There is none where the position weighs nothing
// (every 29th), and where the last character of s is not a check character.
func replacement(s string, i int, sum uint) (c byte, ok bool) {
	last := len(s) - 1
	if i == last {
		return Betanumeric[sum%uint(radix)], s[i] < 0x80
	}
	if s[i] >= 0x80 {
		return 0, false
	}
	weight := uint(i + 1)
	sum += weight * (uint(radix) - value(s[i]))
	for v := range uint(radix) {
		if agree(sum+weight*v, s[last]) {
			return Betanumeric[v], true
		}
	}
	return 0, false
}

// agree reports whether check is the check character of a text with that sum.
func agree(sum uint, check byte) bool { return Betanumeric[sum%uint(radix)] == check }

// value returns what c counts in a sum.
func value(c byte) uint { return uint(max(values[c], 0)) }

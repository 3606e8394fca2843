package stele

// LongestPrefix returns the length of the longest registered prefix of a text among those
// at which it may be cut; 0 if there is none. It is for stores that keep names in order.
//
// floor(n) looks at the last name in order that is not after the first n bytes of the text.
// It returns the length of that name, and how many of the n bytes it has in common with
// the text; ok is false if there is no such name. Every prefix of the text that is a name
// begins that name too, since what is between two texts in order begins with all that both
// begin with. So one look rules out all prefixes that are longer than what is common,
// however long the text is, and a name that is found first is the longest.
func LongestPrefix(text string, cuts func(n int) bool, floor func(n int) (length, common int, ok bool, err error)) (int, error) {
	n := lastCut(len(text)-1, cuts)
	for n > 0 {
		length, common, ok, err := floor(n)
		if err != nil || !ok {
			return 0, err
		}
		if common == length && (common == n || cuts(common)) {
			return common, nil
		}
		n = lastCut(min(common, n-1), cuts)
	}
	return 0, nil
}

// lastCut returns the longest place up to n at which a text may be cut, or 0.
func lastCut(n int, cuts func(n int) bool) int {
	for n > 0 && !cuts(n) {
		n--
	}
	return max(n, 0)
}

// CommonPrefix returns how many bytes two texts begin with in common.
func CommonPrefix[A, B ~string | ~[]byte](a A, b B) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// Package spelling finds the word that a mistyped one may mean.
package spelling

// Nearest returns the word that the fewest mistakes turn into the text, "" if it
// takes more than a third of the text's letters.
func Nearest(text string, words []string) (found string) {
	best := max(1, len(text)/3) + 1
	for _, word := range words {
		if d := Distance(text, word); d < best {
			best, found = d, word
		}
	}
	return found
}

// Distance counts how many letters must be put in, taken out or changed to turn one
// text into another (Levenshtein).
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			above := row[j+1]
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			row[j+1] = min(cost, above+1, row[j]+1)
			diagonal = above
		}
	}
	return row[len(b)]
}

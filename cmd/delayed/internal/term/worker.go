package term

// Condition is how a worker is, by the word of inspect.Worker.Condition.
func Condition(word string) Cell {
	switch word {
	case "dead":
		return C(word, Red)
	case "alive", "running":
		return C(word, Green)
	default:
		return C(word, Yellow)
	}
}

// Claims is how many tasks a worker has, and how many it may run at a time; 0 executors are unknown.
func Claims(claims, executors int) Cell {
	text := Number(claims)
	if executors > 0 {
		text += "/" + Number(executors)
	}
	if claims == 0 {
		return C(text, Dim)
	}
	return C(text, Green)
}

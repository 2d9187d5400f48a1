//! `--clients`: how many clients measure at once.

use std::str::FromStr;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Clients {
    Powers,
    Numbers(Vec<usize>),
}

impl FromStr for Clients {
    type Err = String;

    fn from_str(text: &str) -> Result<Clients, String> {
        if text == "powers" {
            return Ok(Clients::Powers);
        }
        let number = |word: &str| match word.trim().parse() {
            Ok(number) if number > 0 => Ok(number),
            _ => Err(format!("'{word}' is not a number of clients; write 1,2,4 or powers")),
        };
        let mut numbers = text.split(',').map(number).collect::<Result<Vec<usize>, _>>()?;
        numbers.sort_unstable();
        numbers.dedup();
        Ok(Clients::Numbers(numbers))
    }
}

impl Clients {
    pub(crate) fn of(&self, all: usize) -> Result<Vec<usize>, String> {
        match self {
            Clients::Powers => {
                let powers = std::iter::successors(Some(1usize), |one| one.checked_mul(2));
                Ok(powers.take_while(|&one| one < all).chain([all]).collect())
            }
            Clients::Numbers(numbers) => match numbers.iter().find(|&&number| number > all) {
                Some(number) => Err(format!(
                    "--clients {number}: there are only {all}; start more (mpirun -np {number}, or twin:nas,clients={number}), or give a smaller number"
                )),
                None => Ok(numbers.clone()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_clients_are_lists_or_powers() {
        let of = |text: &str, all| Clients::from_str(text).and_then(|clients| clients.of(all));
        assert_eq!(of("powers", 1), Ok(vec![1]));
        assert_eq!(of("powers", 6), Ok(vec![1, 2, 4, 6]));
        assert_eq!(of("powers", 8), Ok(vec![1, 2, 4, 8]));
        assert_eq!(of("4,1,2,4", 4), Ok(vec![1, 2, 4]));
        for (text, words) in
            [("8", "--clients 8: there are only 4"), ("0", "'0'"), ("two", "'two'"), ("", "''")]
        {
            assert!(of(text, 4).unwrap_err().contains(words), "{text}");
        }
    }
}

"""``python -m sessiontree.demo``"""

from sessiontree.demo import run

if __name__ == "__main__":
    run()

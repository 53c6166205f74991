"""The page of the browser check, in a headless Chromium with an empty profile."""
import os

QUIET = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--no-proxy-server"]


def visit(url, folder, seconds=60):
    """Returns the results of the page's script as a dictionary."""
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.support.ui import WebDriverWait

    options = Options()
    options.binary_location = "/usr/bin/chromium"
    for flag in [*QUIET, f"--user-data-dir={os.path.join(folder, 'profile')}"]:
        options.add_argument(flag)
    service = Service("/usr/bin/chromedriver", log_path=os.devnull)
    driver = webdriver.Chrome(service=service, options=options)
    try:
        version = driver.capabilities["browserVersion"]
        driver.set_page_load_timeout(seconds)
        driver.get(url)
        WebDriverWait(driver, seconds).until(lambda d: d.execute_script("return window.done === true"))
        return version, driver.execute_script("return result")
    finally:
        # quit() ends the browser and then the driver's own process, which is the child that was started here.
        driver.quit()
        if service.process and service.process.poll() is None:
            service.process.kill()
            service.process.wait()


def is_installed():
    try:
        import selenium  # noqa: F401
    except ImportError:
        return False
    return all(os.path.exists(f"/usr/bin/{name}") for name in ("chromium", "chromedriver"))
